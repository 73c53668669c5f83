"""The landing page: what this is, a live figure made by the model, and where to go."""

import streamlit as st

from kvviz.figures.lifetimes import lifetimes
from kvviz.ui.cache import view as cache_view
from kvviz.ui.pages import open_page
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.page import prose, show
from kvviz.ui.shell.words import side_words
from kvviz.ui.start import view as start_view

page = open_page("Start", "What does a language model still hold?", prose("start"))
a, b = page.runs()
layer, head = cache_view.place(page.view, a)
page.headline(start_view.headline(a, b))
figure = drawn(
    lifetimes,
    a.trace.evicted_at[layer, head],
    a.labels,
    role_of=cache_view.roles(a),
    count_from=a.count_from,
    prompt_tokens=a.trace.prompt_tokens,
    title=f"{side_words('A', a.trace.setup)} · layer {layer}, KV head {head}",
)
show(figure, "start", cache_view.lifetimes_csv(a, layer))
for column, (name, value, beside, said) in zip(st.columns(3), start_view.cards(a, b), strict=True):
    column.metric(name, value, beside, delta_color="off", delta_arrow="off", border=True, help=said)
st.subheader("Questions to begin with", anchor=False)
start_view.questions(page.view)

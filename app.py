"""The landing page: what this is, a live figure made by the model, and where to go."""

import streamlit as st

from kvviz.text.prose import prose
from kvviz.ui.cache import view as cache_view
from kvviz.ui.pages import open_page
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.words import plain, side_words
from kvviz.ui.start import view as start_view

page = open_page("Start", "What does a language model still hold?", prose("start"))
a, b = page.runs()
layer, head = cache_view.place(page.view, a)
page.headline(start_view.headline(a, b))
title = f"{side_words('A', a.trace.setup)} · layer {layer}, KV head {head}"
show(cache_view.lifetimes_figure(a, layer, head, "a", title), "lifetimes")
for column, (name, value, beside, said) in zip(st.columns(3), start_view.cards(a, b), strict=True):
    column.metric(name, value, beside, delta_color="off", delta_arrow="off", border=True, help=said)
st.caption(plain(start_view.computed_words(page.view, a, b)))
st.markdown("**Questions to begin with**")
start_view.questions(page.view)

"""Why the first token? How much attention the first tokens take, and what happens when they go."""

import streamlit as st

from kvviz.figures.overview import layer_head_table
from kvviz.ui.attention import view as attention_view
from kvviz.ui.cache import view as cache_view
from kvviz.ui.components.layer_head_picker import layer_head_picker
from kvviz.ui.pages import open_page
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import download
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.page import show
from kvviz.ui.shell.words import side_words
from kvviz.ui.sinks import ablation as board_view
from kvviz.ui.sinks import figures as sinks_figures
from kvviz.ui.sinks import view as look
from kvviz.ui.sinks.controls import sinks_menu

page = open_page("Sinks", "Why the first token?")
a, b = page.runs()
layer, head = attention_view.layer_and_head(page.view, a)
_, kv_head = cache_view.place(page.view, a)
sinks = sinks_menu(page.view)
page.headline(look.headline(a, sinks))

sides = [("A", a), ("B", b)]
for column, (side, run) in zip(st.columns(2), sides, strict=True):
    with column:
        st.markdown(f"**{side_words(side, run.trace.setup)}**")
        st.session_state[f"sinks-{side}"] = (layer, head)
        shares = look.shares(run, sinks)
        layer_head_picker(
            shares,
            (layer, head),
            name="sink mass",
            key=f"sinks-{side}",
            kv_heads=run.trace.kv_heads,
            on_pick=attention_view.choose_place,
        )
        download(layer_head_table(shares), f"sink-mass-{side}")
page.paint()

left, right = st.columns(2)
with left:
    show(sinks_figures.along_figure(a, b, sinks, layer), "along")
with right:
    show(sinks_figures.denominator_figure(a, b, sinks), "denominator")
st.markdown(" ".join(look.denominator_words(run, sinks, side) for side, run in sides))

st.subheader("Sink ablation", anchor=False, help=meaning("ablation", "loss"))
board_place, board_slot = st.container(), st.empty()
st.subheader("Attention averaged over many short sentences", anchor=False)
sentences_place, sentences_slot = st.container(), st.empty()

st.subheader("Key and value norms", anchor=False, help=meaning("norm"))
st.markdown(look.norm_words(a, layer, kv_head, sinks))
left, right = st.columns(2)
with left:
    show(sinks_figures.norms_figure(a, "keys", layer, kv_head), "norms-keys")
with right:
    show(sinks_figures.norms_figure(a, "values", layer, kv_head), "norms-values")

page.lesson("sinks")
page.try_this()

if found := waiting.extra(*board_view.board_job(page.view, a, sinks), board_slot):
    with board_place:
        st.markdown(board_view.board_words(found.value, look.model_title(page.view), sinks))
        show(board_view.board_figure(found.value), "sink-ablation")
if found := waiting.extra(*look.sentences_job(page.view), sentences_slot):
    with sentences_place:
        maps, count = found.value
        st.markdown(look.sentence_words(maps, count))
        look.draw_sentences(maps, layer)

"""Why the first token? How much attention the first tokens take, and what happens when they go."""

import streamlit as st

from kvviz.figures.bars import bars
from kvviz.figures.series import series_lines
from kvviz.measures.sinks import mean_known, sink_mass_along
from kvviz.ui.attention import view as attention_view
from kvviz.ui.cache import view as cache_view
from kvviz.ui.components.layer_head_picker import layer_head_picker
from kvviz.ui.pages import open_page
from kvviz.ui.shell import waiting
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.page import download, show
from kvviz.ui.shell.words import side_words
from kvviz.ui.sinks import ablation as board_view
from kvviz.ui.sinks import view as look
from kvviz.ui.sinks.controls import sinks_menu

page = open_page("Sinks", "Why the first token?")
a, b = page.runs()
layer, head = attention_view.layer_and_head(page.view, a)
_, kv_head = cache_view.place(page.view, a)
sinks = sinks_menu(page.view)
page.headline(look.headline(a, sinks))

sides = [("A", a), ("B", b)]
names = [side_words(side, run.trace.setup) for side, run in sides]
pairs = list(zip(names, sides, strict=True))
for column, (name, (side, run)) in zip(st.columns(2), pairs, strict=True):
    with column:
        st.markdown(f"**{name}**")
        st.session_state[f"sinks-{side}"] = (layer, head)
        pick = {"key": f"sinks-{side}", "kv_heads": run.trace.kv_heads, "on_pick": attention_view.choose_place}
        layer_head_picker(look.shares(run, sinks), (layer, head), name="sink mass", **pick)
        download(f"sink-mass-{side}", look.shares_csv(run, sinks))
page.paint()

left, right = st.columns(2)
with left:
    lines = [(n, s.lower(), sink_mass_along(r.trace.first_weights, sinks, layer)) for n, (s, r) in pairs]
    looks = {"y_title": "sink mass (share of 1)", "x_title": "query (position)", "count_from": a.count_from}
    title = f"Sink mass along the text, layer {layer}"
    show(drawn(series_lines, lines, title=title, from_zero=True, **looks), "along", cache_view.series_csv(lines, a))
with right:
    lines = [(n, s.lower(), mean_known(look.shares(r, sinks))) for n, (s, r) in pairs]
    looks = {"y_title": "share of the denominator", "from_zero": True, "x_title": "layer"}
    show(drawn(series_lines, lines, title="Share of the softmax denominator by layer", **looks), "denominator")
st.markdown(" ".join(look.denominator_words(run, sinks, side) for side, run in sides))

st.subheader("Sink ablation", anchor=False, help=meaning("ablation", "loss"))
board_place, board_slot = st.container(), st.empty()
st.subheader("Attention averaged over many short sentences", anchor=False)
sentences_place, sentences_slot = st.container(), st.empty()

st.subheader("Key and value norms", anchor=False, help=meaning("norm"))
st.markdown(look.norm_words(a, layer, kv_head, sinks))
for column, name, norms in zip(st.columns(2), ("keys", "values"), (a.trace.key_norm, a.trace.value_norm), strict=True):
    with column:
        lines = [(f"norm of {name}", "a", norms[layer, kv_head])]
        title = f"Norm of {name}, layer {layer}, KV head {kv_head}"
        looks = {"y_title": "Euclidean norm", "x_title": "token (position)", "count_from": a.count_from}
        show(drawn(series_lines, lines, title=title, **looks), f"norms-{name}")

page.lesson("sinks")
page.try_this()

if found := waiting.extra(*board_view.board_job(page.view, a, sinks), board_slot):
    with board_place:
        st.markdown(board_view.board_words(found.value, look.model_title(page.view), sinks))
        show(
            drawn(bars, *board_view.board_bars(found.value), unit="nats per token", axis="loss after the prompt"),
            "board",
        )
if found := waiting.extra(*look.sentences_job(page.view), sentences_slot):
    with sentences_place:
        maps, count = found.value
        st.markdown(look.sentence_words(maps, count))
        look.draw_sentences(maps, layer)

"""The supporting figures of the Sinks page; only the open part is computed."""

from __future__ import annotations

import streamlit as st

from kvviz.ui.cache.view import place
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.model_card import model_title
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
from kvviz.ui.sinks import ablation, figures
from kvviz.ui.sinks import view as look

Runs = tuple[Run, Run]


def draw(part: str, view: View, runs: Runs, sinks: int, layer: int) -> None:
    """The part that is open."""
    if part == "text":
        along_and_by_layer(runs, sinks, layer)
    elif part == "ablation":
        sink_ablation(view, runs[0], sinks)
    elif part == "sentences":
        sentences(view, layer)
    else:
        norms(view, runs[0], sinks)


def along_and_by_layer(runs: Runs, sinks: int, layer: int) -> None:
    """Sink mass query by query in one layer, and as a share of the denominator in every layer."""
    left, right = st.columns(2)
    with left:
        show(figures.along_figure(*runs, sinks, layer), "sink-mass-along-the-text")
    with right:
        show(figures.denominator_figure(*runs, sinks), "denominator")
    words = (look.denominator_words(run, sinks, side) for side, run in zip("AB", runs, strict=True))
    st.markdown(" ".join(words))


def sink_ablation(view: View, run: Run, sinks: int) -> None:
    """The same text read with and without its first tokens."""
    if found := waiting.extra(*ablation.ablation_job(view, run, sinks), st.empty()):
        said = ablation.ablation_words(found.value, model_title(view), sinks)
        st.markdown(said, help=meaning("ablation", "loss"))
        show(ablation.ablation_figure(found.value), "sink-ablation")


def sentences(view: View, layer: int) -> None:
    """Maps averaged over many short sentences."""
    if found := waiting.extra(*look.sentences_job(view), st.empty()):
        maps, count = found.value
        st.markdown(look.sentence_words(maps, count))
        look.draw_sentences(maps, layer)


def norms(view: View, run: Run, sinks: int) -> None:
    """How long the keys and values of the first tokens are beside the others."""
    layer, kv_head = place(view, run)
    st.markdown(look.norm_words(run, layer, kv_head, sinks), help=meaning("norm"))
    left, right = st.columns(2)
    with left:
        show(figures.norms_figure(run, "keys", layer, kv_head), "norms-of-keys")
    with right:
        show(figures.norms_figure(run, "values", layer, kv_head), "norms-of-values")

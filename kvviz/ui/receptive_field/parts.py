"""The supporting figures of the Receptive field page; only the open part is drawn."""

from __future__ import annotations

import streamlit as st

from kvviz.ui.receptive_field import figures
from kvviz.ui.receptive_field import view as look
from kvviz.ui.receptive_field.bounds import calculator
from kvviz.ui.receptive_field.runs import Pair
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.words import plain


def draw(part: str, pair: Pair | None, runs: tuple[Run, Run], depth: int, by: str) -> None:
    """The part that is open; two of them need the gradients of A and B, which somebody may have stopped."""
    if part == "calculator":
        st.markdown(calculator(), help=meaning("receptive field", "dilation"))
    elif pair and part == "distance":
        show(figures.distance(pair, runs, depth, by), "distance")
        st.markdown(plain(look.distance_words(pair, depth, by)))
    elif pair:
        show(figures.sublayers(runs[0], pair.a, depth), "parts-of-a-layer")
        st.markdown(plain(look.parts_words(pair.a, depth)))

"""The Sinks page's own menu, and its grids of layers and heads."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.figures.overview import layer_head_table
from kvviz.ui.attention.view import choose_place
from kvviz.ui.components.layer_head_picker import layer_head_picker
from kvviz.ui.shell.chart import numbers
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View, kept_setting
from kvviz.ui.shell.words import side_words
from kvviz.ui.sinks.settings import SinksSettings

SINK_CHOICES = (1, 2, 4, 8)


def sinks_menu(view: View) -> int:
    """How many first tokens count as sinks: a few numbers, and the one a link brought."""
    choices = sorted({*SINK_CHOICES, view.of(SinksSettings).sinks})
    own = kept_setting(SinksSettings, "sinks")
    return st.segmented_control("First tokens that count as sinks", choices, help=meaning("sink"), **own, required=True)


def mass_picker(run: Run, side: str, shares: NDArray[np.floating], chosen: tuple[int, int]) -> None:
    """The sink mass of every layer and head under one side, (L, A); a click chooses."""
    st.markdown(f"**{side_words(side, run.trace.setup)}**")
    st.session_state[f"sinks-{side}"] = chosen
    layer_head_picker(
        shares, chosen, name="sink mass", key=f"sinks-{side}", kv_heads=run.trace.kv_heads, on_pick=choose_place
    )
    numbers(layer_head_table(shares), f"sink-mass-{side}")

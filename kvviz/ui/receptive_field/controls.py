"""The Receptive field page's own fields: the token, where its path begins, and how influence is measured."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kvviz.choices.experiment import TOKENS_LIMIT
from kvviz.ui.receptive_field.settings import MEASURED, ReachSettings
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import kept, kept_setting

COUNTED_FROM_0 = " (the figures count from 1)"


def measured_by() -> str:
    """How influence is measured."""
    looks = {"help": meaning("gradient", "rollout"), **kept_setting(ReachSettings, "by")}
    return str(
        st.segmented_control("Measured by", list(MEASURED), format_func=MEASURED.__getitem__, required=True, **looks)
    )


def query_field(place: DeltaGenerator, run: Run) -> None:
    """The token asked about, by its position as arrays count."""
    last = run.trace.tokens - 1
    place.number_input(
        f"Token: position 0–{last}{COUNTED_FROM_0 if run.count_from else ''}",
        min_value=0,
        max_value=TOKENS_LIMIT,
        step=1,
        placeholder="the last",
        help=meaning("receptive field"),
        **kept("query", None),
    )


def source_field(place: DeltaGenerator, run: Run, query: int) -> None:
    """Where the strongest path begins."""
    place.number_input(
        f"Path from: position 0–{query}{COUNTED_FROM_0 if run.count_from else ''}",
        min_value=0,
        max_value=TOKENS_LIMIT,
        step=1,
        placeholder="the farthest that must be relayed",
        help=meaning("relay"),
        **kept_setting(ReachSettings, "path_from"),
    )

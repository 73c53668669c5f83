"""The Attention page's own menus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from kvviz.figures.scales import ScaleName
from kvviz.measures.attention import MEASURES, Measure
from kvviz.ui.attention.settings import AVERAGES, SCALES, AttentionSettings
from kvviz.ui.shell.glossary import glossary, meaning
from kvviz.ui.shell.state import View, kept_setting


def map_menus() -> tuple[ScaleName, str]:
    """How the maps are coloured, and whether they are of one head or of its layer."""
    left, right = st.columns(2)
    scale: ScaleName = left.segmented_control("Colour scale", list(SCALES), required=True, **menu("scale", SCALES))
    average = right.segmented_control("Map of", list(AVERAGES), required=True, **menu("average", AVERAGES))
    return scale, str(average)


def measure_menu() -> Measure:
    """What the overview of layers and heads shows."""
    titles = {name: measure.title for name, measure in MEASURES.items()}
    told = [word for name in MEASURES if (word := name.replace("_", " ")) in glossary()]
    looks = {"help": meaning(*told), **menu("measure", titles)}
    return MEASURES[str(st.selectbox("Choose a layer and head by", list(MEASURES), **looks))]


def menu(name: str, words: Mapping[Any, str]) -> dict[str, Any]:
    """What the widget of a setting needs, its values shown in words."""
    return {"format_func": words.__getitem__, **kept_setting(AttentionSettings, name)}


def last_query_button(view: View) -> None:
    """The way back from a query that was chosen, by a click or by a link."""
    if view.query is not None:
        st.button("Back to the last query", key="last-query", on_click=forget_query)


def forget_query() -> None:
    st.session_state["query"] = None

"""The supporting figures of the Attention page; only the open part is computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from kvviz.figures.frame import ALL_TICKS
from kvviz.figures.pooling import LIMIT
from kvviz.figures.scales import ScaleName
from kvviz.ui.attention import agreement, figures, gallery
from kvviz.ui.attention import view as look
from kvviz.ui.attention.controls import last_query_button, measure_menu
from kvviz.ui.attention.settings import AttentionSettings
from kvviz.ui.attention.view import Floats, Place
from kvviz.ui.components.layer_head_picker import layer_head_picker
from kvviz.ui.components.token_strip import token_strip
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import COUNTS_FROM_ONE, plain

Runs = tuple[Run, Run]


def draw(
    part: str, view: View, runs: Runs, maps: Sequence[Floats], place: Place, scale: ScaleName, average: str
) -> None:
    """The part that is open."""
    if part == "heads":
        heads_and_query(view, runs[0], maps[0], place, scale, average)
    elif part == "difference":
        difference(runs[0], maps, place, scale, average)
    elif part == "seen":
        who_sees_whom(runs[0], maps[0], place, average)
    elif part == "agreement":
        agreement.draw(*runs, place, view.of(AttentionSettings).top_k)
    else:
        gallery.draw()


def heads_and_query(view: View, run: Run, weights: Floats, place: Place, scale: ScaleName, average: str) -> None:
    """All layers and heads to choose from, and beside them one query over the text."""
    left, right = st.columns(2)
    with left:
        st.session_state["overview"] = (place.layer, place.head)
        values, name = look.overview(run, measure_menu())
        layer_head_picker(
            values,
            (place.layer, place.head),
            name=name,
            key="overview",
            kv_heads=run.trace.kv_heads,
            on_pick=look.choose_place,
        )
    with right:
        st.markdown("**One query over the text**", help=meaning("query"))
        st.caption(look.query_words(run, weights, place, average))
        last_query_button(view)
        strip(run, weights, place.query, scale)


def strip(run: Run, weights: Floats, query: int, scale: ScaleName) -> None:
    """The text, shaded by what the query gives to each token; a click makes another token the query."""
    st.session_state["strip"] = query
    token_strip(
        run.texts,
        np.asarray(weights[query]),
        query=query,
        key="strip",
        scale="linear" if scale == "linear" else "log",
        count_from=run.count_from,
        on_pick=look.choose_query,
    )


def difference(run: Run, maps: Sequence[Floats], place: Place, scale: ScaleName, average: str) -> None:
    """Where A looks and B does not."""
    drawing = figures.difference_figure(run, maps, look.place_words(place, average), scale)
    show(drawing, "difference")
    st.markdown(plain(drawing.alt))


def who_sees_whom(run: Run, weights: Floats, place: Place, average: str) -> None:
    """Which keys each query sees under A, as a map and in words."""
    left, right = st.columns(2)
    with left:
        if run.trace.tokens <= LIMIT:
            show(figures.visibility_figure(run, weights), "visibility")
        else:
            st.caption(f"A map of single keys is drawn of at most {LIMIT} tokens; the list has all of them.")
    with right:
        where = look.place_words(place, average)
        st.markdown(f"**The same in words, {where}** {COUNTS_FROM_ONE if run.count_from else ''}")
        with st.container(height=look.LIST_HEIGHT if run.trace.tokens > ALL_TICKS else "content"):
            st.code(look.seen_by(run, weights), language=None)

"""All layers at once on the Cache page: how much each holds at the end, and how much of it two heads share."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.figures.series import Series, series_lines
from kvviz.measures.overlap import overlap_of_kept
from kvviz.ui.cache.view import Sides
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.runs import Run


def draw(sides: Sides) -> None:
    """A sentence, entries by layer after the last token, and what the KV heads of a layer have in common."""
    st.markdown(" ".join(sentence(side.upper(), run) for side, _, run in sides))
    left, right = st.columns(2)
    with left:
        lines: list[Series] = [(name, side, entries_at_the_end(run)) for side, name, run in sides]
        entries = drawn(
            series_lines,
            lines,
            y_title="entries per KV head",
            x_title="layer",
            title="Entries by layer, after the last token",
            from_zero=True,
        )
        show(entries, "entries-by-layer")
    with right:
        lines = [(name, side, overlap_of_kept(run.trace.evicted_at)) for side, name, run in sides]
        title = "Cached tokens that two KV heads of a layer share"
        shares = drawn(
            series_lines, lines, y_title="share of the entries", x_title="layer", title=title, from_zero=True
        )
        show(shares, "kept-in-common")


def entries_at_the_end(run: Run) -> NDArray[np.floating]:
    """Of each layer, (L,): the mean of its KV heads, which differ only in a model with windows of its own."""
    mean: NDArray[np.floating] = (run.trace.evicted_at >= run.trace.tokens).sum(-1).mean(1)
    return mean


def sentence(side: str, run: Run) -> str:
    """How many entries the layers hold, and what two heads of a layer have in common."""
    entries, alike = entries_at_the_end(run), overlap_of_kept(run.trace.evicted_at)
    least, most = int(entries.min()), int(entries.max())
    held = f"{most} entries in every layer" if least == most else f"{least} to {most} entries, depending on the layer"
    if np.isnan(alike).any():
        return f"Under {side} a KV head holds {held}."
    return (
        f"Under {side} a KV head holds {held}; two KV heads of a layer share {alike.mean():.0%} of their cached tokens."
    )

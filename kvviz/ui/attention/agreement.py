"""Whether queries and heads agree on which keys matter: what one query looked at most, the next may not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.figures import Drawing
from kvviz.figures.overview import agreement_grid
from kvviz.figures.series import Series, series_lines
from kvviz.measures.overlap import overlap_of_heads, overlap_with_previous
from kvviz.ui.attention.settings import AttentionSettings
from kvviz.ui.attention.view import Place, heads_of
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import kept_setting
from kvviz.ui.shell.words import plural, side_words

Floats = NDArray[np.floating]
TOP_CHOICES = (1, 4, 8, 16, 32)


def draw(a: Run, b: Run, place: Place, first_choice: int) -> None:
    """A part of the Attention page: a sentence, overlap along the text, overlap between the heads of a layer."""
    layer, head, query = place.layer, place.head, place.query
    choices = sorted({*TOP_CHOICES, first_choice})
    own = kept_setting(AttentionSettings, "top_k")
    count = st.segmented_control("Keys with the largest weights, compared", choices, **own, required=True)
    shares = [overlap_with_previous(run.trace.maps[layer, head], count) for run in (a, b)]
    between = overlap_of_heads(np.stack([weights[query] for weights in heads_of(a, layer)]), count)
    st.markdown(sentence(shares, between, count, head))
    left, right = st.columns(2)
    with left:
        show(steps_drawing(a, b, shares, layer, head), "agreement")
    with right:
        title = f"Heads of layer {layer}, query {query + a.count_from}, policy A"
        show(drawn(agreement_grid, between, group=len(between) // a.trace.kv_heads, title=title), "heads")


def steps_drawing(a: Run, b: Run, shares: Sequence[Floats], layer: int, head: int) -> Drawing:
    """What each query has in common with the one before, under A and B."""
    lines: list[Series] = [
        (side_words("A", a.trace.setup), "a", shares[0]),
        (side_words("B", b.trace.setup), "b", shares[1]),
    ]
    return drawn(
        series_lines,
        lines,
        y_title="share of the keys",
        x_title="query (position)",
        smooth_over=max(1, a.trace.tokens // 32),
        count_from=a.count_from,
        labels=a.labels,
        title=f"Keys with the largest weights shared with the previous query, layer {layer}, head {head}",
    )


def sentence(shares: Sequence[Floats], between: Floats, count: int, head: int) -> str:
    """What the two figures show, in numbers."""
    means = [float(np.nanmean(share)) if np.isfinite(share).any() else float("nan") for share in shares]
    steps = " under A and ".join(f"{mean:.0%}" for mean in means if mean == mean) or "nothing"
    others = between[~np.eye(len(between), dtype=bool)]
    heads = f"{np.nanmean(others):.0%}" if np.isfinite(others).any() else "nothing"
    return (
        f"Of the {plural(count, 'key')} with the largest weights, a query of head {head} shares {steps} under B with "
        f"the previous query on average. For the chosen query, two heads of this layer share {heads} under A. A policy "
        "that ranks keys by one query or one head may evict keys that others attend to."
    )

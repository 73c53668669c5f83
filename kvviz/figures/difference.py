"""Where A looks and B does not: rows are queries, columns are keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.attention import Floats, cells, left_out, map_frame, map_table, mark_columns, without_sinks
from kvviz.figures.drawing import Drawing
from kvviz.figures.pooling import LIMIT, pool, pool_notice
from kvviz.figures.scales import colour_bar


def difference_map(
    a: Floats,
    b: Floats,
    labels: Sequence[str],
    *,
    top: float | None = None,
    title: str = "A − B",
    first_query: int = 0,
    limit: int = LIMIT,
    sinks: int = 0,
) -> Drawing:
    """Where A gives more weight than B (blue) and where less (orange), both (Q, T); blank unless both could look.

    The colour grows with the square root of the difference, the same on both sides, up to ``top`` (default: the
    largest difference), because a few large differences would leave the others invisible; ``sinks`` first keys, where
    the largest ones usually are, can be left out.
    """
    if a.shape != b.shape:
        raise ValueError(f"A {a.shape} and B {b.shape} must have the same number of queries and keys.")
    difference = a - b
    shown = without_sinks(difference, sinks)
    largest = float(np.nanmax(np.abs(shown))) if np.isfinite(shown).any() else 0.0
    top = top or largest or 1.0
    pooled, factor = pool(shown, limit, how="mean")
    fig = go.Figure([difference_heat(pooled, labels, first_query, factor, top), difference_bar(top)])
    if sinks:
        mark_columns(fig, sinks / factor)
    alt = f"Attention of A minus attention of B; the largest difference in a single weight is {largest:.3g}."
    notices = [left_out(sinks), pool_notice(factor, "their mean difference")]
    bar_title = "weight in A minus weight in B (square-root scale)"
    map_frame(fig, pooled.shape, "difference", alt, title, " ".join(filter(None, notices)), bar_title)
    return Drawing(fig, map_table(difference, labels, first_query), alt)


def difference_heat(z: Floats, labels: Sequence[str], first_query: int, factor: int, top: float) -> go.Heatmap:
    """The cells of a map of differences."""
    return go.Heatmap(
        **cells(z, labels, first_query, factor),
        zmin=-top,
        zmax=top,
        colorscale=bent(theme.DIVERGING),
        hovertemplate="query %{y}<br>key %{x}<br>A − B %{z:+.3~g}<extra></extra>",
    )


def difference_bar(top: float) -> go.Scatter:
    """The colour bar of ``difference_map``: evenly coloured, so its ticks lie at the square roots."""
    values = [-1.0, -0.25, 0.0, 0.25, 1.0]
    places = [0.5 + 0.5 * float(np.sign(value) * np.sqrt(abs(value))) for value in values]
    texts = [f"{value * top:+.2g}" if value else "0" for value in values]
    return colour_bar(theme.DIVERGING, places, texts)


def bent(stops: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """A three-colour scale whose strength grows with the square root of the distance from its middle."""
    low, middle, high = (parts(colour) for _, colour in stops)
    strengths = np.linspace(0, 1, 17)
    left = [(0.5 - 0.5 * s**2, mixed(middle, low, s)) for s in strengths[::-1]]
    right = [(0.5 + 0.5 * s**2, mixed(middle, high, s)) for s in strengths[1:]]
    return [(float(place), colour) for place, colour in left + right]


def parts(colour: str) -> list[float]:
    return [float(number) for number in colour.removeprefix("rgba(").removesuffix(")").split(",")]


def mixed(start: list[float], end: list[float], share: float) -> str:
    values = [s + (e - s) * share for s, e in zip(start, end, strict=True)]
    return "rgba({:.0f},{:.0f},{:.0f},{:.3f})".format(*values)

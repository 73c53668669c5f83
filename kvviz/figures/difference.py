"""Where A looks and B does not: rows are queries, columns are keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.attention import (
    Floats,
    cells,
    first_keys,
    left_out,
    map_frame,
    map_table,
    mark_columns,
    without_sinks,
)
from kvviz.figures.drawing import Drawing
from kvviz.figures.pooling import LIMIT, pool, pool_notice
from kvviz.figures.scales import Scale, ScaleName, colour_bar
from kvviz.measures.sinks import SINKS
from kvviz.text.counting import plural

BAR_TITLE = "weight in A minus weight in B"
STEPS = 16  # colours on each side of zero


def difference_map(
    a: Floats,
    b: Floats,
    labels: Sequence[str],
    *,
    scale: ScaleName = "log",
    title: str = "A − B",
    first_query: int = 0,
    limit: int = LIMIT,
    sinks: int = SINKS,
) -> Drawing:
    """Where A gives more weight than B (blue) and where less (orange), both (Q, T); blank unless both could look.

    The scales are those of ``attention_map``, the same on both sides of zero: logarithmic down to ``FLOOR``, because
    one large difference at a sink would leave all others invisible; linear; or linear without the first ``sinks`` keys,
    where the largest differences usually are. The top is the largest difference shown.
    """
    if a.shape != b.shape:
        raise ValueError(f"A {a.shape} and B {b.shape} must have the same number of queries and keys.")
    difference, left = a - b, sinks if scale == "no_sinks" else 0
    shown = without_sinks(difference, left)
    shading = Scale(scale, largest(shown) or 1.0)
    pooled, factor = pool(shown, limit, how="mean")
    fig = go.Figure([difference_heat(pooled, labels, first_query, factor, shading), difference_bar(shading)])
    if left:
        mark_columns(fig, left / factor)
    alt = difference_alt(difference, labels, sinks, first_query)
    notices = [left_out(left), pool_notice(factor, "their mean difference")]
    map_frame(fig, pooled.shape, "difference", alt, title, " ".join(filter(None, notices)), BAR_TITLE)
    return Drawing(fig, map_table(difference, labels, first_query), alt)


def largest(difference: Floats) -> float:
    """The largest absolute difference; 0 where there is none."""
    return float(np.nanmax(np.abs(difference))) if np.isfinite(difference).any() else 0.0


def difference_alt(difference: Floats, labels: Sequence[str], sinks: int, first_query: int) -> str:
    """Where the largest difference is, and the largest away from the first keys."""
    head = "Attention of A minus attention of B"
    if not largest(difference):
        return f"{head}: no difference in {plural(int(np.isfinite(difference).sum()), 'weight')} that both have."
    query, key = np.unravel_index(int(np.nanargmax(np.abs(difference))), difference.shape)
    rest = largest(without_sinks(difference, sinks))
    return (
        f"{head}: the largest difference in a single weight is {float(difference[query, key]):+.3g}, from query "
        f"{labels[first_query + int(query)]!r} to key {labels[int(key)]!r}; beyond {first_keys(sinks)} it is at most "
        f"{rest:.3g}."
    )


def difference_heat(z: Floats, labels: Sequence[str], first_query: int, factor: int, shading: Scale) -> go.Heatmap:
    """The cells of a map of differences."""
    return go.Heatmap(
        **cells(z, labels, first_query, factor),
        zmin=-shading.top,
        zmax=shading.top,
        colorscale=mirrored(shading),
        hovertemplate="query %{y}<br>key %{x}<br>A − B %{z:+.3~g}<extra></extra>",
    )


def difference_bar(shading: Scale) -> go.Scatter:
    """The colour bar of ``difference_map``: evenly spaced, so its ticks lie where the scale puts the values."""
    ticks = [value for value in shading.ticks() if shading.place(value) > 0] if shading.name == "log" else []
    ticks = ticks[-3:] or [shading.top / 2, shading.top]
    values = [*(-value for value in reversed(ticks)), 0.0, *ticks]
    places = [0.5 + 0.5 * float(np.sign(value)) * shading.place(abs(value)) for value in values]
    texts = [f"{value:+.2g}".replace("-", "−") if value else "0" for value in values]
    return colour_bar(two_sided([step / STEPS for step in range(STEPS + 1)]), places, texts)


def mirrored(shading: Scale) -> list[tuple[float, str]]:
    """The colours over [−top, top], whose strength grows on both sides of zero as ``shading`` says."""
    return two_sided(shading.values(STEPS))


def two_sided(values: Sequence[float]) -> list[tuple[float, str]]:
    """A plotly scale with the colours of each strength at the ``values``, shares of the top from 0 to 1."""
    (_, low), (_, middle), (_, high) = theme.DIVERGING
    steps = [(value, step / (len(values) - 1)) for step, value in enumerate(values)]
    left = [(0.5 - 0.5 * value, toned(low, middle, strength)) for value, strength in reversed(steps)]
    return left + [(0.5 + 0.5 * value, toned(high, middle, strength)) for value, strength in steps[1:]]


def toned(end: str, middle: str, strength: float) -> str:
    """The colour of a side at that strength: its hue from the start, or weak differences would be as grey as none."""
    *hue, full = parts(end)
    faint = parts(middle)[-1]
    return "rgba({:.0f},{:.0f},{:.0f},{:.3f})".format(*hue, faint + (full - faint) * strength) if strength else middle


def parts(colour: str) -> list[float]:
    return [float(number) for number in colour.removeprefix("rgba(").removesuffix(")").split(",")]

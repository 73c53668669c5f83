"""One number per layer and head, all at a glance."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures.drawing import Drawing, Table, matrix_table
from kvviz.figures.frame import bare, lay_out
from kvviz.figures.scales import BINS, EVEN_SHADES, colour_bar


def layer_head_grid(
    values: NDArray[np.floating],
    *,
    name: str,
    unit: str,
    selected: tuple[int, int] | None = None,
    value_range: tuple[float, float] = (0.0, 1.0),
    title: str = "",
    row: int = 16,
) -> Drawing:
    """A heat map of one measure, (L, A) layers × heads, layer 0 at the top; the selected cell is outlined.

    ``row`` is the height of a layer in pixels.
    """
    low, high = value_range
    if not high > low:
        raise ValueError(f"The range of the colours must grow, not run from {low} to {high}.")
    z = np.asarray(values, dtype=np.float32)
    hover = f"layer %{{y}}, head %{{x}}<br>{name} %{{z:.3~g}} {unit}<extra></extra>"
    fig = go.Figure([even_heat(z, low, high, hover), colour_bar(EVEN_SHADES, *bar_ticks(low, high))])
    layers, heads = z.shape
    fig.update_xaxes(index_axis("head", round_step(heads / 16), [-0.5, heads - 0.5]))
    fig.update_yaxes(index_axis("layer", round_step(layers / 8), [layers - 0.5, -0.5]))
    if selected is not None:
        outline(fig, *selected)
    height = min(60 + row * layers, 560)
    alt = overview_alt(z, name, unit, title)
    kind = f"overview {z.shape}"
    lay_out(fig, kind=kind, alt=alt, height=height, title=title, bar_title=f"{name} ({unit})")
    return Drawing(fig, layer_head_table(values), alt)


def layer_head_table(values: NDArray[np.floating]) -> Table:
    """A row a layer, a column a head, (L, A)."""
    layers, heads = values.shape
    return matrix_table("layer", numbered("layer", layers), numbered("head", heads), values)


def numbered(name: str, count: int) -> list[str]:
    return [f"{name} {place}" for place in range(count)]


def agreement_grid(shares: NDArray[np.floating], *, group: int = 1, title: str = "") -> Drawing:
    """How far the heads of a layer agree, (A, A) shares.

    White lines separate the query heads that share a KV head, ``group`` of them each.
    """
    z = np.asarray(shares, dtype=np.float32)
    hover = "heads %{y} and %{x}<br>%{z:.0%} of their strongest keys in common<extra></extra>"
    fig = go.Figure([even_heat(z, 0, 1, hover), colour_bar(EVEN_SHADES, *bar_ticks(0, 1))])
    heads = len(z)
    fig.update_xaxes(index_axis("head", round_step(heads / 16), [-0.5, heads - 0.5]))
    fig.update_yaxes(index_axis("head", round_step(heads / 16), [heads - 0.5, -0.5]))
    for edge in range(group, heads, group):
        fig.add_hline(y=edge - 0.5, line={"color": "#ffffff", "width": 4})
        fig.add_vline(x=edge - 0.5, line={"color": "#ffffff", "width": 4})
    alt = agreement_alt(z, title or "Heads")
    lay_out(
        fig, kind=f"agreement {heads}", alt=alt, height=300, title=title, bar_title="strongest keys in common (share)"
    )
    return Drawing(fig, matrix_table("head", numbered("head", heads), numbered("head", heads), shares), alt)


def agreement_alt(z: NDArray[np.float32], title: str) -> str:
    """What two heads have in common on average."""
    others = z[~np.eye(len(z), dtype=bool)]
    if not len(others):
        return f"{title}: there is only 1 head, so there is nothing to compare."
    if not np.isfinite(others).any():
        return f"{title}: no value was recorded for {len(z)} heads."
    return f"{title}: two heads of {len(z)} have {np.nanmean(others):.0%} of their strongest keys in common on average."


def even_heat(z: NDArray[np.float32], low: float, high: float, hover: str) -> go.Heatmap:
    """Cells on the sequential map, each apart from the next."""
    cells: dict[str, Any] = {"z": z, "xgap": 1, "ygap": 1, "hoverongaps": False, "showscale": False}
    return go.Heatmap(**cells, zmin=low, zmax=high, colorscale=EVEN_SHADES, hovertemplate=hover)


def index_axis(name: str, step: int, ends: list[float]) -> dict[str, Any]:
    """An axis of whole numbers without room at its ends."""
    return bare() | {"title": {"text": name, "standoff": 8}, "dtick": step, "range": ends}


def bar_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Five places along the colour bar and the values there."""
    places = [step / BINS for step in range(0, BINS + 1, BINS // 4)]
    return places, [f"{low + place * (high - low):.3g}" for place in places]


def round_step(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, … that is not below ``least``."""
    power = 1
    while 5 * power < least:
        power *= 10
    return next(digit * power for digit in (1, 2, 5) if digit * power >= least)


def outline(fig: go.Figure, layer: int, head: int) -> None:
    """A frame around one cell, white within black, which no colour of the map hides."""
    box = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
    for colour, width in (("#000000", 5), ("#ffffff", 2)):
        fig.add_shape({"type": "rect", **box, "line": {"color": colour, "width": width}})


def overview_alt(z: NDArray[np.float32], name: str, unit: str, title: str) -> str:
    head = f"{title}: {name}" if title else name[:1].upper() + name[1:]
    head += f" of {z.shape[0]} layers × {z.shape[1]} heads"
    if not np.isfinite(z).any():
        return f"{head}; no value was recorded."
    layer, place = np.unravel_index(int(np.nanargmax(z)), z.shape)
    largest, mean = float(z[layer, place]), float(np.nanmean(z))
    return f"{head}: largest {largest:.3g} {unit} in layer {layer}, head {place}; mean {mean:.3g} {unit}."

"""How far a token sees: layers as rows, positions as columns, the exact reach shaded and what is measured in colour."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.attention import MAP_HEIGHT
from kvviz.figures.drawing import Drawing, Table, matrix_table
from kvviz.figures.frame import ALL_TICKS, lay_out, short, token_axis
from kvviz.figures.pooling import pool_factor, pool_labels, pooled_columns
from kvviz.figures.scales import Scale
from kvviz.text.counting import plural

Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]

POSITION_TITLE = "position in the text (number, token)"
LEVEL_TITLE = "hidden state after n layers (0 = input)"
DEPTH_TITLE = "layers passed through"
SHARE_TITLE = "influence (share of the row)"
SCALE = Scale("log", 1.0)
ROW_HEIGHT = 34  # pixels a row of a map with few rows


def depth_map(
    found: Floats,
    reach: Bools,
    depths: Sequence[int],
    labels: Sequence[str],
    *,
    title: str = "",
    mark: int | None = None,
) -> Drawing:
    """What one token depends on after each number of layers: shares (D, T), the exact reach (D, T).

    The row of ``mark`` layers is framed.
    """
    rows = [str(depth) for depth in depths]
    alt = (
        f"{title or 'Influence'}: through {plural(depths[-1], 'layer')} {int(reach[-1].sum())} of {found.shape[1]} "
        f"positions can influence the token; the largest measured share is {float(np.nanmax(found[-1])):.1%}."
    )
    fig = share_map(found, reach, rows, labels, y_title=DEPTH_TITLE, kind="depths", alt=alt, title=title)
    if mark is not None and mark in depths:
        frame_row(fig, list(depths).index(mark))
    return Drawing(fig, reach_table(DEPTH_TITLE, rows, labels, found, reach), alt)


def reach_table(corner: str, rows: Sequence[str], labels: Sequence[str], found: Floats, reach: Bools) -> Table:
    """A row a depth; the shares of all positions, then for each whether it can have influence at all."""
    labels = labels[: found.shape[1]]
    shares = matrix_table(corner, rows, labels, found)
    return Table((*shares.header, *(f"{label} (1 = can have influence)" for label in labels)), (*shares.columns, reach))


def cone_map(
    found: Floats, cone: Bools, labels: Sequence[str], *, path: Sequence[int] = (), title: str = ""
) -> Drawing:
    """How the input of one token gets there, level by level: (levels, T) shares and reach, level 0 = the input.

    ``path`` holds one position a level, from the input up.
    """
    rows = [str(level) for level in range(len(found))]
    count, layers = int(cone[0].sum()), len(rows) - 1
    alt = (
        f"{title or 'Influence'}: {plural(count, 'position')} of the input can influence the token through "
        f"{plural(layers, 'layer')}."
    )
    if path:
        hops = [labels[path[0]], *(labels[b] for a, b in pairwise(path) if a != b)]
        alt = f"{alt[:-1]}; the strongest path goes {' → '.join(hops)}."
    fig = share_map(found, cone, rows, labels, y_title=LEVEL_TITLE, kind="cone", alt=alt, title=title)
    table = reach_table(LEVEL_TITLE, rows, labels, found, cone)
    if path:
        add_path(fig, path, rows, pool_factor(found.shape[1]))
        stops = [labels[position] for position in path]
        table = Table((*table.header, "strongest path"), (*table.columns, stops))
    return Drawing(fig, table, alt)


def parts_map(parts: dict[str, Floats], labels: Sequence[str], *, title: str = "") -> Drawing:
    """What each part of one layer takes from which position for the last of them, (T,) shares each; top to bottom."""
    found = np.stack([parts[name] for name in reversed(parts)])
    sideways = {name: 1 - float(part[-1]) for name, part in parts.items()}
    told = ", ".join(f"{name} {share:.0%}" for name, share in sideways.items())
    alt = f"{title or 'Parts of a layer'}; share of the influence that comes from other positions: {told}."
    rows = list(reversed(parts))
    height = ROW_HEIGHT * len(rows) + 90
    fig = share_map(
        found, found > 0, rows, labels, y_title="part of the layer", kind="parts", alt=alt, title=title, height=height
    )
    mark_still(fig, [name for name in rows if parts[name][-1] == 1])
    return Drawing(fig, matrix_table("part of the layer", rows[::-1], labels[: found.shape[1]], found[::-1]), alt)


def mark_still(fig: go.Figure, rows: Sequence[str]) -> None:
    """A sign at the one cell of rows that take everything from their own position; it may be a pixel wide."""
    columns: Sequence[str] = fig.data[0]["x"]
    edge = {"color": "#1a1a1a", "width": 1.5}
    places: dict[str, Any] = {"x": [columns[-1]] * len(rows), "y": list(rows)}
    fig.add_scatter(
        **places,
        mode="markers",
        marker={"symbol": "diamond", "size": 11, "color": theme.SEQUENTIAL[-1], "line": edge},
        showlegend=False,
        cliponaxis=False,
        hovertemplate="%{y} · %{x}<br>all of the influence<extra></extra>",
        name="still",
    )


def share_map(
    found: Floats,
    reach: Bools,
    rows: Sequence[str],
    labels: Sequence[str],
    *,
    y_title: str,
    kind: str,
    alt: str,
    title: str = "",
    height: int = MAP_HEIGHT,
) -> go.Figure:
    """Shares in colour where they are worth it, grey where hardly any was measured, blank where none can be."""
    factor = pool_factor(found.shape[1])
    shown = pooled_columns(np.where(reach, found, np.nan), factor)
    columns = [short(label) for label in pool_labels(labels, factor)[: shown.shape[1]]]
    fig = go.Figure([shade(shown, columns, rows), colours(shown, columns, rows), SCALE.bar()])
    fig.update_xaxes(token_axis(len(columns), POSITION_TITLE), tickangle=-90)
    fig.update_yaxes(token_axis(len(rows), y_title) | row_ticks(rows))
    notice = f"Grey: can have influence, but less than {SCALE.floor:g} was measured. Blank: cannot have any."
    if factor > 1:
        notice += f" Each cell covers {factor} positions and shows their largest share."
    frame = f"{kind} {shown.shape[0]}×{shown.shape[1]}"
    lay_out(fig, kind=frame, alt=alt, height=height, title=title, notice=notice, bar_title=SHARE_TITLE)
    return fig.update_layout(plot_bgcolor=theme.CLEAR)


def row_ticks(rows: Sequence[str]) -> dict[str, Any]:
    """Every row is named where there are few, else the first and every fifth."""
    few = len(rows) <= ALL_TICKS
    named = [row for place, row in enumerate(rows) if few or place == 0 or (row.isdigit() and int(row) % 5 == 0)]
    return {"tickmode": "array", "tickvals": named}


def shade(shown: Floats, columns: Sequence[str], rows: Sequence[str]) -> go.Heatmap:
    """The reach itself, under the colours."""
    inside = np.where(np.isfinite(shown), np.float32(1), np.float32(np.nan))
    grey = [(0.0, theme.GONE), (1.0, theme.GONE)]
    hover = "%{y} · %{x}<br>can have influence, hardly any measured<extra></extra>"
    return go.Heatmap(**cells(inside, columns, rows), zmin=0, zmax=1, colorscale=grey, hovertemplate=hover)


def colours(shown: Floats, columns: Sequence[str], rows: Sequence[str]) -> go.Heatmap:
    """What was measured, on the logarithmic scale of all shares."""
    seen = np.where(shown >= SCALE.floor, shown, np.float32(np.nan))
    hover = "%{y} · %{x}<br>share %{z:.3~g}<extra></extra>"
    drawn = cells(seen, columns, rows)
    return go.Heatmap(**drawn, zmin=0, zmax=SCALE.top, colorscale=SCALE.stops(), hovertemplate=hover)


def cells(z: NDArray[np.float32], columns: Sequence[str], rows: Sequence[str]) -> dict[str, Any]:
    gap = 1 if max(z.shape) <= 64 else 0
    return {"z": z, "x": columns, "y": list(rows), "showscale": False, "hoverongaps": False, "xgap": gap, "ygap": gap}


def frame_row(fig: go.Figure, row: int) -> None:
    """A thin frame round one row of the map, white within black as the path is; a side's colour would name a side."""
    box = {"type": "rect", "x0": 0, "x1": 1, "xref": "x domain", "y0": row - 0.5, "y1": row + 0.5}
    for colour, width in (("#1a1a1a", 4), ("#ffffff", 2)):
        fig.add_shape({**box, "line": {"color": colour, "width": width}})


def add_path(fig: go.Figure, path: Sequence[int], rows: Sequence[str], factor: int) -> None:
    """The path over the map: white in a dark border, which stands out from every colour and from either page."""
    columns: Sequence[str] = fig.data[0]["x"]
    places: dict[str, Any] = {"x": [columns[position // factor] for position in path], "y": list(rows)}
    for colour, width, size in (("#1a1a1a", 5.5, 9), ("#ffffff", 2.5, 6)):
        fig.add_scatter(
            **places,
            mode="lines+markers",
            line={"color": colour, "width": width},
            marker={"color": colour, "size": size},
            showlegend=False,
            hoverinfo="skip",
            name="strongest path",
        )

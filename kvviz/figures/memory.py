"""A cache as a box whose sides are what is multiplied, and bytes against context beside the memories people own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.frame import bare, lay_out, legend_above
from kvviz.tokens import escape

COLUMNS = 2
ROW_HEIGHT, LINE_HEIGHT = 230, 420  # pixels
CELL_WIDTH, CELL_HEIGHT = 1.75, 1.18  # in units of the longest side
HIGH, DEEP = 0.52, 0.36  # how long the sides of most heads and of the widest number are drawn
THIN = 0.012  # a side is drawn at least so long, or nothing would be seen of it
SLANT = (0.72, 0.55)  # how a step into depth is drawn
GIB = 2**30
APART = 0.24  # powers of ten between two names at the ends of lines
SHADES = ("#2f74c8", "#7fb0ea", "#1f4f8d")  # front, top, side: A's accent, lighter and darker
HELD = theme.ROLES[-1].colour  # everything kept
OTHERS = "rgba(128,128,128,0.85)"


@dataclass(frozen=True)
class Box:
    """One cache: what its sides count, and the words around it."""

    title: str
    tokens: int
    heads: int
    depth: float  # bytes that one token holds in one head
    words: tuple[str, str, str]  # along tokens, heads and depth
    below: str  # layers and bytes


@dataclass(frozen=True)
class Line:
    """Bytes at each context; a side's accent, or grey for other models."""

    name: str
    bytes: tuple[int, ...]
    side: theme.Side | None = None
    is_whole: bool = False  # the chosen model with everything kept


def memory_boxes(boxes: Sequence[Box], *, title: str = "") -> go.Figure:
    """Boxes on one scale, each with the outline of the first behind it; the volume is the bytes of one layer."""
    scale = [max(getattr(box, name) for box in boxes) for name in ("tokens", "heads", "depth")]
    cells = [((place % COLUMNS) * CELL_WIDTH, -(place // COLUMNS) * CELL_HEIGHT) for place in range(len(boxes))]
    fig = go.Figure(outline(boxes[0], cells[1:], scale))
    for face, colour in enumerate(SHADES):
        fig.add_trace(faces(boxes, cells, scale, face, colour))
    for box, cell in zip(boxes, cells, strict=True):
        fig.add_annotation(note(box.title, cell[0], cell[1] + HIGH + DEEP * SLANT[1] + 0.13, 13, "left"))
        name_sides(fig, box, cell, sides(box, scale))
    rows = -(-len(boxes) // COLUMNS)
    hidden = {"visible": False, "fixedrange": True}
    fig.update_xaxes(hidden | {"range": [-0.12, COLUMNS * CELL_WIDTH - 0.22]})
    fig.update_yaxes(hidden | {"range": [-(rows - 1) * CELL_HEIGHT - 0.27, HIGH + DEEP * SLANT[1] + 0.22]})
    told = "; ".join(f"{box.title}: {box.below}" for box in boxes)
    lay_out(fig, kind=f"boxes {len(boxes)}", alt=f"{title}: {told}.", height=ROW_HEIGHT * rows, title=title)
    return fig.update_layout(showlegend=False, hovermode=False, dragmode=False)


def sides(box: Box, scale: Sequence[float]) -> tuple[float, float, float]:
    """How long tokens, heads and depth are drawn."""
    lengths = (box.tokens / scale[0], HIGH * box.heads / scale[1], DEEP * box.depth / scale[2])
    return max(lengths[0], THIN), max(lengths[1], THIN), max(lengths[2], THIN)


def corners(lengths: tuple[float, float, float], face: int) -> list[tuple[float, float]]:
    """The four corners of the front, the top or the right side."""
    x, y, z = lengths
    into = (z * SLANT[0], z * SLANT[1])
    front, back = [(0.0, 0.0), (x, 0.0), (x, y), (0.0, y)], [(into[0], into[1]), (x + into[0], into[1])]
    back += [(x + into[0], y + into[1]), (into[0], y + into[1])]
    return [front, [front[3], front[2], back[2], back[3]], [front[1], back[1], back[2], front[2]]][face]


def path(shapes: Sequence[tuple[tuple[float, float], list[tuple[float, float]]]]) -> dict[str, list[float | None]]:
    """Closed polygons at their cells as one line with gaps."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for (left, bottom), points in shapes:
        xs += [*(left + x for x, _ in (*points, points[0])), None]
        ys += [*(bottom + y for _, y in (*points, points[0])), None]
    return {"x": xs, "y": ys}


def faces(
    boxes: Sequence[Box], cells: Sequence[tuple[float, float]], scale: Sequence[float], face: int, colour: str
) -> go.Scatter:
    shapes = [(cell, corners(sides(box, scale), face)) for box, cell in zip(boxes, cells, strict=True)]
    look = {"mode": "lines", "line": {"color": colour, "width": 1}, "fill": "toself", "fillcolor": colour}
    return go.Scatter({**path(shapes), **look, "hoverinfo": "skip"})


def outline(box: Box, cells: Sequence[tuple[float, float]], scale: Sequence[float]) -> go.Scatter:
    """The first box dotted behind the others, so that what has shrunk is seen."""
    shapes = [(cell, corners(sides(box, scale), face)) for cell in cells for face in range(3)]
    look = {"mode": "lines", "line": {"color": theme.RULE, "width": 1, "dash": "dot"}}
    return go.Scatter({**path(shapes), **look, "hoverinfo": "skip"})


def name_sides(fig: go.Figure, box: Box, cell: tuple[float, float], lengths: tuple[float, float, float]) -> None:
    """What each side counts, and under the box what it holds."""
    left, bottom = cell
    x, y, z = lengths
    along_tokens, along_heads, along_depth = box.words
    fig.add_annotation(note(along_tokens, left, bottom - 0.055, 11, "left"))
    fig.add_annotation(note(box.below, left, bottom - 0.165, 12, "left"))
    fig.add_annotation(note(along_heads, left - 0.05, bottom + HIGH / 2, 11, "center") | {"textangle": -90})
    place = left + x + z * SLANT[0] + 0.03, bottom + max(y, 0.08) + z * SLANT[1] / 2
    fig.add_annotation(note(along_depth, *place, 11, "left"))


def note(text: str, x: float, y: float, size: int, anchor: str) -> dict[str, Any]:
    return {"text": escape(text), "x": x, "y": y, "showarrow": False, "font": {"size": size}, "xanchor": anchor}


def bytes_against_context(
    contexts: Sequence[int],
    lines: Sequence[Line],
    capacities: Sequence[tuple[int, str]],
    *,
    here: int,
    title: str = "",
) -> go.Figure:
    """One line a model or setup on log axes, with the capacities (bytes, name) of GPUs; ``here`` is the context."""
    fig = go.Figure([drawn_line(contexts, line) for line in lines])
    for size, name in capacities:
        fig.add_hline(y=size / GIB, line={"color": theme.RULE, "width": 1, "dash": "dot"})
        place: dict[str, Any] = {"x": 0.01, "xref": "x domain", "xanchor": "left", "yanchor": "bottom", "yref": "y"}
        fig.add_annotation(text=name, y=np.log10(size / GIB), showarrow=False, font={"size": 11}, **place)
    fig.add_vline(x=here, line={"color": theme.RULE, "width": 1})
    name_ends(fig, contexts[-1], [line for line in lines if line.side is None and not line.is_whole])
    grid = {"showgrid": True, "gridcolor": "rgba(128,128,128,0.22)"}
    ticks = [4**power * 1024 for power in range(6)]
    shown = [f"{tick // 1024:,} K" for tick in ticks]
    axis = bare() | {"type": "log", "title": "tokens of context (1 K = 1,024)", "tickvals": ticks, "ticktext": shown}
    fig.update_xaxes(axis | {"range": [np.log10(contexts[0]), np.log10(contexts[-1]) + 0.95]})
    fig.update_yaxes(bare() | grid | {"type": "log", "title": "cache (GiB)", "tickformat": "~g", "dtick": 1})
    named = [line for line in lines if line.side or line.is_whole]
    told = "; ".join(f"{line.name} {line.bytes[-1] / GIB:.4g} GiB" for line in lines)
    alt = f"{title or 'Bytes against context'}; at {contexts[-1]:,} tokens: {told}."
    lay_out(fig, kind="bytes against context", alt=alt, height=LINE_HEIGHT, title=title, above=10 + 22 * len(named))
    return fig.update_layout(legend_above(len(named)))


def name_ends(fig: go.Figure, last: int, others: Sequence[Line]) -> None:
    """The other models' names at the right ends of their lines, moved apart where they would meet."""
    lowest = -np.inf
    for line in sorted(others, key=lambda line: line.bytes[-1]):
        lowest = max(np.log10(max(line.bytes[-1], 1) / GIB), lowest + APART)
        place: dict[str, Any] = {"x": np.log10(last), "y": lowest, "xanchor": "left", "xshift": 4}
        fig.add_annotation(text=escape(line.name), showarrow=False, font={"size": 11}, **place)


def drawn_line(contexts: Sequence[int], line: Line) -> go.Scatter:
    look: dict[str, Any] = {"color": OTHERS, "width": 1.2}
    if line.side is not None:
        look = {"color": theme.ACCENT[line.side], "width": 3, "dash": theme.DASH[line.side]}
    elif line.is_whole:
        look = {"color": HELD, "width": 3, "dash": "dot"}
    return go.Scatter(
        {
            "x": np.asarray(contexts, dtype=np.float64),
            "y": np.asarray([count / GIB if count else np.nan for count in line.bytes]),
            "name": escape(line.name),
            "mode": "lines",
            "line": look,
            "showlegend": line.side is not None or line.is_whole,
            "hovertemplate": f"%{{x:,.0f}} tokens: %{{y:.4~g}} GiB<extra>{escape(line.name)}</extra>",
        }
    )

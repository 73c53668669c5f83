"""A cache as a box whose sides are what is multiplied, and bytes against context beside the memories people own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.frame import bare, lay_out, legend_above
from kvviz.text.signs import escape

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
    traces = [outline(boxes[0], cells[1:], scale)]
    traces += [faces(boxes, cells, scale, face, colour) for face, colour in enumerate(SHADES)]
    named = zip(boxes, cells, strict=True)
    rows = -(-len(boxes) // COLUMNS)
    hidden = {"visible": False, "fixedrange": True}
    layout = {
        "annotations": [note for box, cell in named for note in box_notes(box, cell, sides(box, scale))],
        "xaxis": hidden | {"range": [-0.12, COLUMNS * CELL_WIDTH - 0.22]},
        "yaxis": hidden | {"range": [-(rows - 1) * CELL_HEIGHT - 0.27, HIGH + DEEP * SLANT[1] + 0.22]},
        **{"showlegend": False, "hovermode": False, "dragmode": False},
    }
    fig = go.Figure(traces, layout)  # all at once: plotly checks every annotation again with each one added
    told = "; ".join(f"{box.title}: {box.below}" for box in boxes)
    return lay_out(fig, kind=f"boxes {len(boxes)}", alt=f"{title}: {told}.", height=ROW_HEIGHT * rows, title=title)


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


def box_notes(box: Box, cell: tuple[float, float], lengths: tuple[float, float, float]) -> list[dict[str, Any]]:
    """The title above a box, what each side counts, and under it what it holds."""
    left, bottom = cell
    x, y, z = lengths
    along_tokens, along_heads, along_depth = box.words
    place = left + x + z * SLANT[0] + 0.03, bottom + max(y, 0.08) + z * SLANT[1] / 2
    return [
        note(box.title, left, bottom + HIGH + DEEP * SLANT[1] + 0.13, 13, "left"),
        note(along_tokens, left, bottom - 0.055, 11, "left"),
        note(box.below, left, bottom - 0.165, 12, "left"),
        note(along_heads, left - 0.05, bottom + HIGH / 2, 11, "center") | {"textangle": -90},
        note(along_depth, *place, 11, "left"),
    ]


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
    named = [line for line in lines if line.side or line.is_whole]
    ticks = {"tickvals": [4**power * 1024 for power in range(6)], "ticktext": [f"{4**power:,} K" for power in range(6)]}
    axis = bare() | ticks | {"type": "log", "title": "tokens of context (1 K = 1,024)"}
    grid = {"showgrid": True, "gridcolor": "rgba(128,128,128,0.22)"}
    layout = {
        "xaxis": axis | {"range": [np.log10(contexts[0]), np.log10(contexts[-1]) + 0.95]},
        "yaxis": bare() | grid | {"type": "log", "title": "cache (GiB)", "tickformat": "~g", "dtick": 1},
        "shapes": [*(capacity_rule(size) for size, _ in capacities), here_rule(here)],
        "annotations": [*(capacity_name(*one) for one in capacities), *name_ends(contexts[-1], lines)],
        **legend_above(len(named)),
    }
    fig = go.Figure([drawn_line(contexts, line) for line in lines], layout)
    told = "; ".join(f"{line.name} {line.bytes[-1] / GIB:.4g} GiB" for line in lines)
    alt = f"{title or 'Bytes against context'}; at {contexts[-1]:,} tokens: {told}."
    above = 10 + 22 * len(named)
    return lay_out(fig, kind="bytes against context", alt=alt, height=LINE_HEIGHT, title=title, above=above)


def capacity_rule(size: int) -> dict[str, Any]:
    """A dotted line across at the memory of a GPU."""
    ends = {"x0": 0, "x1": 1, "xref": "x domain", "y0": size / GIB, "y1": size / GIB}
    return {"type": "line", "line": {"color": theme.RULE, "width": 1, "dash": "dot"}, **ends}


def capacity_name(size: int, name: str) -> dict[str, Any]:
    place = {"x": 0.01, "xref": "x domain", "y": np.log10(size / GIB), "xanchor": "left", "yanchor": "bottom"}
    return {"text": escape(name), "showarrow": False, "font": {"size": 11}, **place}


def here_rule(tokens: int) -> dict[str, Any]:
    """A line at the context that is chosen."""
    ends = {"x0": tokens, "x1": tokens, "y0": 0, "y1": 1, "yref": "y domain"}
    return {"type": "line", "line": {"color": theme.RULE, "width": 1}, **ends}


def name_ends(last: int, lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The other models' names at the right ends of their lines, moved apart where they would meet."""
    notes, lowest = [], -np.inf
    for line in sorted(lines, key=lambda line: line.bytes[-1]):
        if line.side is None and not line.is_whole:
            lowest = max(np.log10(max(line.bytes[-1], 1) / GIB), lowest + APART)
            notes.append(note(line.name, np.log10(last), lowest, 11, "left") | {"xshift": 4})
    return notes


def drawn_line(contexts: Sequence[int], line: Line) -> go.Scatter:
    look: dict[str, Any] = {"color": "rgba(128,128,128,0.85)", "width": 1.2}
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

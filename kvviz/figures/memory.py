"""A cache as a box whose sides are what is multiplied."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table, row_table
from kvviz.figures.frame import lay_out
from kvviz.text.signs import escape

ROW_HEIGHT = 290  # pixels
TITLE_WIDTH = 17  # characters of a line above or below a box; on a phone a third of the figure holds about so many
CELL_WIDTH, CELL_HEIGHT = 2.05, 1.35  # in units of the longest side
HIGH, DEEP = 0.52, 0.36  # how long the sides of most heads and of the widest number are drawn
THIN = 0.012  # a side is drawn at least so long, or nothing would be seen of it
SLANT = (0.72, 0.55)  # how a step into depth is drawn
SHADES: Final[dict[theme.Side | None, tuple[str, str, str]]] = {  # front, top, side: an accent, lighter and darker
    None: ("#7f8894", "#b3bac4", "#565e69"),
    "a": (theme.ACCENT["a"], "#7fb0ea", "#1f4f8d"),
    "b": (theme.ACCENT["b"], "#f0a366", "#984706"),
}


@dataclass(frozen=True)
class Box:
    """One cache: what its sides count, and the words around it."""

    title: str
    tokens: int
    heads: int
    depth: float  # bytes that one token holds in one head
    words: tuple[str, str, str]  # along tokens, heads and depth
    below: str  # layers and bytes
    side: theme.Side | None = None  # whose colour; grey for the model itself


def memory_boxes(boxes: Sequence[Box], *, title: str = "") -> Drawing:
    """Boxes on one scale, each with the outline of the first behind it; the volume is the bytes of one layer."""
    scale = [max(getattr(box, name) for box in boxes) for name in ("tokens", "heads", "depth")]
    columns = columns_for(len(boxes))
    cells = [((place % columns) * CELL_WIDTH, -(place // columns) * CELL_HEIGHT) for place in range(len(boxes))]
    traces = [outline(boxes[0], cells[1:], scale)]
    named = list(zip(boxes, cells, strict=True))
    for side in dict.fromkeys(box.side for box in boxes):
        own = [one for one in named if one[0].side == side]
        traces += [faces(own, scale, face, colour) for face, colour in enumerate(SHADES[side])]
    rows = -(-len(boxes) // columns)
    hidden = {"visible": False, "fixedrange": True}
    layout = {
        "annotations": [note for box, cell in named for note in box_notes(box, cell, sides(box, scale))],
        "xaxis": hidden | {"range": [-0.2, columns * CELL_WIDTH - 0.22]},
        "yaxis": hidden | {"range": [-(rows - 1) * CELL_HEIGHT - 0.33, HIGH + DEEP * SLANT[1] + 0.3]},
        **{"showlegend": False, "hovermode": False, "dragmode": False},
    }
    fig = go.Figure(traces, layout)  # all at once: plotly checks every annotation again with each one added
    alt = f"{title}: {'; '.join(f'{box.title}: {box.below}' for box in boxes)}."
    lay_out(fig, kind=f"boxes {len(boxes)}", alt=alt, height=ROW_HEIGHT * rows, title=title)
    return Drawing(fig, box_table(boxes), alt)


def columns_for(count: int) -> int:
    """Two or three beside each other, so that none stands alone in a row below others."""
    return 2 if count in (2, 4) else min(count, 3)


def box_table(boxes: Sequence[Box]) -> Table:
    """A row a box: what its sides count, and the words below it."""
    header = ("cache", "tokens", "heads", "bytes of a token in a head", "all layers")
    rows = [(box.title, box.tokens, box.heads, box.depth, box.below) for box in boxes]
    return row_table(header, rows)


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
    boxes: Sequence[tuple[Box, tuple[float, float]]], scale: Sequence[float], face: int, colour: str
) -> go.Scatter:
    """One face of all boxes of a colour, each at its cell."""
    shapes = [(cell, corners(sides(box, scale), face)) for box, cell in boxes]
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
        note(box.title, left, bottom + HIGH + DEEP * SLANT[1] + 0.06, 13, "left") | {"yanchor": "bottom"},
        note(along_tokens, left, bottom - 0.02, 11, "left") | {"yanchor": "top"},
        note(box.below, left, bottom - 0.1, 12, "left") | {"yanchor": "top"},
        note(along_heads, left - 0.1, bottom + HIGH / 2, 11, "center") | {"textangle": -90},
        note(along_depth, *place, 11, "left"),
    ]


def note(text: str, x: float, y: float, size: int, anchor: str) -> dict[str, Any]:
    """Words in as many lines as they need in a third of a figure."""
    lines = "<br>".join(map(escape, textwrap.wrap(text, TITLE_WIDTH, break_long_words=False)))
    look = {"showarrow": False, "font": {"size": size}, "xanchor": anchor, "align": "left"}
    return {"text": lines, "x": x, "y": y, **look}

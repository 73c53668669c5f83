"""Bytes of a cache against context, beside the memories people own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out, legend_above
from kvviz.figures.memory import note
from kvviz.figures.series import legend_words
from kvviz.text.signs import escape

LINE_HEIGHT = 420  # pixels
GIB = 2**30
APART = 0.24  # powers of ten between two names at the ends of lines
HELD = theme.ROLES[-1].colour  # everything kept


@dataclass(frozen=True)
class Line:
    """Bytes at each context; a side's accent, or grey for other models."""

    name: str
    bytes: tuple[int, ...]
    side: theme.Side | None = None
    is_whole: bool = False  # the chosen model with everything kept


def bytes_against_context(
    contexts: Sequence[int],
    lines: Sequence[Line],
    capacities: Sequence[tuple[int, str]],
    *,
    here: int,
    title: str = "",
) -> Drawing:
    """One line a model or setup on log axes, with the capacities (bytes, name) of GPUs; ``here`` is the context.

    The table has a row a context (tokens) and a column a line, in bytes.
    """
    named = [line for line in lines if line.side or line.is_whole]
    ticks = {"tickvals": [4**power * 1024 for power in range(6)], "ticktext": [f"{4**power:,} K" for power in range(6)]}
    axis = bare() | ticks | {"type": "log", "title": "tokens of context (1 K = 1,024)"}
    layout = {
        "xaxis": axis | {"range": [np.log10(contexts[0]), np.log10(contexts[-1]) + 0.95]},
        "yaxis": bare() | {"type": "log", "title": "cache (GiB)", "tickformat": "~g", "dtick": 1},
        "shapes": [*(capacity_rule(size, contexts) for size, _ in capacities), here_rule(here)],
        "annotations": [*(capacity_name(*one) for one in capacities), *name_ends(contexts[-1], lines)],
        **legend_above(len(named)),
    }
    fig = go.Figure([drawn_line(contexts, line) for line in lines], layout)
    told = "; ".join(f"{line.name} {line.bytes[-1] / GIB:.4g} GiB" for line in lines)
    alt = f"{title or 'Bytes against context'}; at {contexts[-1]:,} tokens: {told}."
    more_lines = sum(legend_words(line.name).count("<br>") for line in named)
    above = 10 + LEGEND_ROW * len(named) + 16 * more_lines
    lay_out(fig, kind="bytes against context", alt=alt, height=LINE_HEIGHT, title=title, above=above)
    header = ("tokens", *(f"{line.name} (bytes)" for line in lines))
    return Drawing(fig, Table(header, (contexts, *(line.bytes for line in lines))), alt)


def capacity_rule(size: int, contexts: Sequence[int]) -> dict[str, Any]:
    """A dotted line at the memory of a GPU; it ends with the lines, before the names of the models."""
    ends = {"x0": contexts[0], "x1": contexts[-1], "y0": size / GIB, "y1": size / GIB}
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
    notes, highest = [], np.inf
    for line in sorted(lines, key=lambda line: -line.bytes[-1]):
        if line.side is None and not line.is_whole:
            highest = min(np.log10(max(line.bytes[-1], 1) / GIB), highest - APART)
            notes.append(note(line.name, np.log10(last), highest, 11, "left") | {"xshift": 4})
    return notes


def drawn_line(contexts: Sequence[int], line: Line) -> go.Scatter:
    look: dict[str, Any] = {"color": "rgba(128,128,128,0.85)", "width": 1.2}
    if line.side is not None:
        look = {"color": theme.ACCENT[line.side], "width": 3, "dash": theme.DASH[line.side]}
    elif line.is_whole:
        look = {"color": HELD, "width": 3, "dash": "dot"}
    return go.Scatter(
        x=np.asarray(contexts, dtype=np.float64),
        y=np.asarray([count / GIB if count else np.nan for count in line.bytes]),
        name=legend_words(line.name),
        mode="lines",
        line=look,
        showlegend=line.side is not None or line.is_whole,
        hovertemplate=f"%{{x:,.0f}} tokens: %{{y:.4~g}} GiB<extra>{escape(line.name)}</extra>",
    )

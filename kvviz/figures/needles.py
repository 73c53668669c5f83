"""Which needles were found: a row a setup and length, a column a depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, matrix_table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out, legend_above
from kvviz.figures.series import HEIGHT, Series, line
from kvviz.text.signs import escape

ROW = 58  # pixels
DEPTH_TITLE = "depth of the needle in the prompt (%)"
Floats = NDArray[np.floating]


def needle_grid(
    rows: Sequence[str],
    depths: Sequence[int],
    found: Floats,
    held: Floats,
    *,
    tries: int = 1,
    pairs: int = 1,
    title: str = "",
) -> Drawing:
    """Share of needles found (S, D) of ``tries`` each, colour from 0 to 1, and whether a miss was forgotten.

    ``held`` (S, D) is the mean share of the ``pairs`` of layers and KV heads that held all of a missed needle when the
    answer began; NaN where none was missed.
    """
    cells = [[(f, h, tries, pairs) for f, h in zip(*row, strict=True)] for row in zip(found, held, strict=True)]
    words, told = ([[say(*cell) for cell in row] for row in cells] for say in (cell_words, hover_words))
    places: dict[str, Any] = {"x": [f"{depth} %" for depth in depths], "y": [escape(row) for row in rows]}
    fig = go.Figure(
        go.Heatmap(
            **places,
            z=np.asarray(found, dtype=np.float32),
            zmin=0,
            zmax=1,
            colorscale=list(theme.SEQUENTIAL),
            text=np.array(words),
            texttemplate="%{text}",
            textfont={"size": 11},
            customdata=np.array(told),
            xgap=2,
            ygap=2,
            showscale=False,
            hovertemplate="%{y}, depth %{x}<br>%{customdata}<extra></extra>",
        )
    )
    fig.update_xaxes(bare(), title_text=DEPTH_TITLE, type="category")
    fig.update_yaxes(bare(), autorange="reversed", title_text="setup, tokens")
    means = "; ".join(f"{row} {shares.mean():.0%}" for row, shares in zip(rows, found, strict=True))
    alt = f"{title or 'Needles found'}, mean over the depths: {means}."
    lay_out(fig, kind=f"needles {len(rows)}", alt=alt, height=80 + ROW * len(rows), title=title)
    return Drawing(fig, matrix_table("setup", list(rows), [f"{depth} %" for depth in depths], found), alt)


def miss_word(held: float) -> str:
    """``forgotten`` where fewer than half of the layers and heads held the needle, else ``not found``."""
    return "forgotten" if held < 0.5 else "not found"


def cell_words(found: float, held: float, tries: int, pairs: int) -> str:
    """How many were found; for those that were not, why, and how many layers and heads held them."""
    start = f"{round(found * tries)} of {tries}"
    return start if np.isnan(held) else f"{start}<br>{miss_word(held)}<br>held {held * pairs:.3g}/{pairs}"


def hover_words(found: float, held: float, tries: int, pairs: int) -> str:
    start = f"found {round(found * tries)} of {tries}"
    if np.isnan(held):
        return start
    return f"{start}; {miss_word(held)}: held by {held * pairs:.3g} of {pairs} layers and KV heads"


def loss_by_depth(series: Sequence[Series], depths: Sequence[int], *, title: str = "") -> Drawing:
    """The mean loss of what is asked at each depth, one line a setup of (D,) nats."""
    fig = go.Figure([line(*one, 0, "%{y:.3~g} nats a token") for one in series])
    fig.update_traces(x=list(depths), mode="lines+markers")
    fig.update_xaxes(bare(), title_text="depth in the text (%)", tickvals=list(depths))
    fig.update_yaxes(bare(), title_text="loss (nats a token)", showgrid=True, gridcolor=theme.GRID, rangemode="tozero")
    means = "; ".join(f"{label} {float(np.mean(values)):.3g}" for label, _, values in series)
    alt = f"{title or 'Loss by depth'}, mean over the depths in nats a token: {means}."
    above = 10 + LEGEND_ROW * len(series)
    lay_out(fig, kind=f"loss by depth {len(series)}", alt=alt, height=HEIGHT, title=title, above=above)
    fig.update_layout(legend_above(len(series)), hovermode="x unified")
    names, values = [label for label, *_ in series], np.stack([np.asarray(values) for *_, values in series])
    return Drawing(fig, matrix_table("setup", names, [f"{depth} %" for depth in depths], values), alt)

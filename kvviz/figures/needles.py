"""Which needles were found: a row a setup, a column a depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, matrix_table
from kvviz.figures.frame import bare, lay_out
from kvviz.text.signs import escape

ROW = 46  # pixels


def needle_grid(
    setups: Sequence[str],
    depths: Sequence[int],
    found: NDArray[np.floating],
    held: NDArray[np.floating],
    *,
    title: str = "",
) -> Drawing:
    """Share of needles found (S, D), colour from 0 to 1, and in words whether a miss was forgotten.

    ``held`` (S, D) is the mean share of layers and KV heads that held all of the needle when the answer began.
    """
    words = [[cell_words(f, h) for f, h in zip(*row, strict=True)] for row in zip(found, held, strict=True)]
    places: dict[str, Any] = {"x": [f"{depth} %" for depth in depths], "y": [escape(setup) for setup in setups]}
    fig = go.Figure(
        go.Heatmap(
            **places,
            z=np.asarray(found, dtype=np.float32),
            zmin=0,
            zmax=1,
            colorscale=list(theme.SEQUENTIAL),
            text=np.array(words),
            texttemplate="%{text}",
            customdata=np.asarray(held, dtype=np.float32),
            hovertemplate="%{y}, depth %{x}<br>found %{z:.0%}, held by %{customdata:.0%}<extra></extra>",
            colorbar={"tickformat": ".0%", "thickness": 12},
        )
    )
    fig.update_xaxes(bare(), title_text="depth of the needle in the prompt (%)", type="category")
    fig.update_yaxes(bare(), autorange="reversed")
    told = "; ".join(f"{setup} {row.mean():.0%}" for setup, row in zip(setups, found, strict=True))
    alt = f"{title or 'Needles found'}, mean over the depths: {told}."
    lay_out(fig, kind=f"needles {len(setups)}", alt=alt, height=80 + ROW * len(setups), title=title)
    return Drawing(fig, matrix_table("setup", list(setups), [f"{depth} %" for depth in depths], found), alt)


def cell_words(found: float, held: float) -> str:
    """``found``, or why not: ``forgotten`` where few heads held the needle, else ``not found``."""
    if found >= 0.5:
        return "found"
    return "forgotten" if held < 0.5 else "not found"

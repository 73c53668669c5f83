"""A few named numbers beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table
from kvviz.figures.frame import bare, lay_out
from kvviz.text.signs import escape

BAR = 34  # pixels of height for each


def bars(
    names: Sequence[str], values: Sequence[float], *, unit: str, axis: str, title: str = "", mark: int | None = None
) -> Drawing:
    """Horizontal bars from zero, the first at the top, each with its number; ``mark`` is drawn in B's colour.

    A value that is not there (NaN) has no bar.
    """
    if len(names) != len(values):
        raise ValueError(f"{len(names)} names do not fit {len(values)} values.")
    colours = [theme.ACCENT["b" if place == mark else "a"] for place in range(len(values))]
    texts = [f"{value:.3g}" if np.isfinite(value) else "—" for value in values]
    places: dict[str, Any] = {"x": list(values), "y": [escape(name) for name in names]}
    bar = go.Bar(
        **places,
        text=texts,
        marker_color=colours,
        textposition="outside",
        cliponaxis=False,
        orientation="h",
        hovertemplate=f"%{{y}}: %{{x:.4g}} {unit}<extra></extra>",
    )
    fig = go.Figure(bar)
    most = max((value for value in values if np.isfinite(value)), default=1.0)
    fig.update_xaxes(bare(), title_text=f"{axis} ({unit})", range=[0, 1.15 * most])
    fig.update_yaxes(bare(), autorange="reversed")
    told = "; ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))
    alt = f"{title or axis} in {unit}: {told}."
    lay_out(fig, kind=f"bars {len(names)}", alt=alt, height=60 + BAR * len(names), title=title)
    return Drawing(fig, Table(("name", f"{axis} ({unit})"), (names, values)), alt)

"""A few named numbers beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.frame import bare, lay_out
from kvviz.text.signs import escape

BAR = 34  # pixels of height for each


def bars(
    names: Sequence[str], values: Sequence[float], *, unit: str, axis: str, title: str = "", mark: int | None = None
) -> go.Figure:
    """Horizontal bars from zero, the first at the top, each with its number; ``mark`` is drawn in B's colour.

    A value that is not there (NaN) has no bar.
    """
    if len(names) != len(values):
        raise ValueError(f"{len(names)} names do not fit {len(values)} values.")
    colours = [theme.ACCENT["b" if place == mark else "a"] for place in range(len(values))]
    texts = [f"{value:.3g}" if np.isfinite(value) else "—" for value in values]
    look: dict[str, Any] = {
        "marker": {"color": colours},
        "textposition": "outside",
        "cliponaxis": False,
        "orientation": "h",
    }
    hover = f"%{{y}}: %{{x:.4g}} {unit}<extra></extra>"
    labels = [escape(name) for name in names]
    fig = go.Figure(go.Bar({"x": list(values), "y": labels, "text": texts, "hovertemplate": hover, **look}))
    most = max((value for value in values if np.isfinite(value)), default=1.0)
    fig.update_xaxes(bare() | {"title": {"text": f"{axis} ({unit})"}, "range": [0, 1.15 * most]})
    fig.update_yaxes(bare() | {"autorange": "reversed"})
    told = "; ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))
    return lay_out(
        fig,
        kind=f"bars {len(names)}",
        alt=f"{title or axis} in {unit}: {told}.",
        height=60 + BAR * len(names),
        title=title,
    )

"""Influence against distance: how fast what a token depends on fades."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from kvviz.figures.drawing import Drawing
from kvviz.figures.series import Series, line, line_frame, series_table

LOWEST = 1e-7  # of the axis of influence against distance


def distance_lines(series: Sequence[Series], *, title: str = "") -> Drawing:
    """Influence against distance: (T,) shares a line, nearest first; what is exactly 0 ends the line."""
    shown = [(label, side, np.where(values > 0, values, np.nan)) for label, side, values in series]
    fig = go.Figure([line(*one, 0, "%{y:.3~g}") for one in shown])
    fig.update_traces(mode="lines+markers", marker_size=3.5)  # under dilation every point stands alone
    ends = [f"{label} reaches {int(np.flatnonzero(values)[-1])} positions back" for label, _, values in series]
    alt = f"{title or 'Influence against distance'}: {'; '.join(ends)}."
    line_frame(fig, "distance", alt, title, None, 0, "distance (positions back from the token)")
    lowest = min(float(np.nanmin(values)) for _, _, values in shown)
    exponents = [np.log10(max(lowest, LOWEST)) - 0.2, 0.1]
    fig.update_yaxes(
        title="influence (share of the total)", type="log", range=exponents, dtick=1, exponentformat="power"
    )
    return Drawing(fig, series_table("distance", series), alt)

"""The weights of one query on a few keys, several ways beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out, legend_above, short, token_axis
from kvviz.text.signs import escape

HEIGHT = 260


def way_bars(
    labels: Sequence[str],
    weights: Mapping[str, NDArray[np.floating]],
    colours: Sequence[theme.LineName],
    *,
    title: str = "",
) -> Drawing:
    """Weights (K,) of each way on the keys named by ``labels``, which are distinct, as bars side by side."""
    fig = go.Figure()
    for (name, values), colour in zip(weights.items(), colours, strict=True):
        bar: dict[str, Any] = {"x": [short(label) for label in labels], "y": values, "name": escape(name)}
        fig.add_bar(**bar, marker_color=theme.LINES[colour][0], hovertemplate="%{x}: %{y:.3~g}<extra></extra>")
    fig.update_xaxes(token_axis(len(labels), "key (position, token)"), tickangle=-45)
    fig.update_yaxes(bare(), title_text="attention weight (0 to 1)", showgrid=True, gridcolor=theme.GRID)
    told = "; ".join(f"{name} at most {float(np.max(values)):.3g}" for name, values in weights.items())
    alt = f"{title or 'Weights'} on {len(labels)} keys: {told}."
    lay_out(fig, kind=f"ways {len(labels)}", alt=alt, height=HEIGHT, title=title, above=LEGEND_ROW + 10)
    fig.update_layout(legend_above(len(weights)), barmode="group", bargap=0.25)
    return Drawing(fig, Table(("key", *weights), (list(labels), *weights.values())), alt)

"""What a query would have looked at and can no longer: a row a layer, a column an evicted token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, matrix_table
from kvviz.figures.frame import bare, lay_out, short, token_axis
from kvviz.figures.scales import Scale

ROW, LEAST = 11, 200  # pixels
BAR_TITLE = "attention weight (0 to 1), mean over the heads"


def gone_map(weights: NDArray[np.floating], labels: Sequence[str], *, title: str = "") -> Drawing:
    """Weights (L, E) on E evicted tokens in each of L layers, drawn from 0 to the largest of them.

    ``labels`` are those of the E tokens, distinct; the first layer is at the top.
    """
    layers, count = weights.shape
    if count != len(labels):
        raise ValueError(f"{len(labels)} labels do not fit {count} columns.")
    top = float(weights.max()) if weights.size and weights.max() > 0 else 1.0
    shading = Scale("linear", top)
    cells: dict[str, Any] = {"x": [short(label) for label in labels], "y": np.arange(layers)}
    heat = go.Heatmap(
        **cells,
        z=np.asarray(weights, dtype=np.float32),
        zmin=0,
        zmax=top,
        colorscale=shading.stops(),
        showscale=False,
        hovertemplate="layer %{y}<br>token %{x}<br>weight %{z:.3~g}<extra></extra>",
    )
    fig = go.Figure([heat, shading.bar()])
    fig.update_xaxes(token_axis(count, "evicted token (position, text)"), tickangle=-90)
    fig.update_yaxes(bare(), title_text="layer", autorange="reversed", tickformat="d")
    alt = gone_alt(weights, labels, title)
    height = max(LEAST, 90 + ROW * layers)
    lay_out(fig, kind=f"gone {layers}×{count}", alt=alt, height=height, title=title, bar_title=BAR_TITLE)
    fig.update_layout(plot_bgcolor=theme.GROUND)
    return Drawing(fig, matrix_table("layer", [str(layer) for layer in range(layers)], list(labels), weights), alt)


def gone_alt(weights: NDArray[np.floating], labels: Sequence[str], title: str) -> str:
    """The largest weight, and where."""
    head = title or "Attention on evicted tokens, by layer"
    if not weights.size or not weights.max() > 0:
        return f"{head}: 0 in all {weights.shape[0]} layers."
    layer, place = np.unravel_index(int(weights.argmax()), weights.shape)
    return (
        f"{head}: the largest weight, {float(weights[layer, place]):.3g}, is in layer {layer} on token "
        f"{labels[int(place)]!r}."
    )

"""Channels of keys and groups of numbers: what shares a scale, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out, legend_above

Floats = NDArray[np.floating]
HEIGHT = 280


def channel_errors(sizes: Floats, own: Floats, shared: Floats, outlier: float, *, title: str = "") -> Drawing:
    """Mean absolute value of each channel (D,) as bars, those above ``outlier`` times the median in B's colour, and
    lines for the error with a scale of its own and with one shared among channels of a key."""
    median = float(np.median(sizes))
    is_large = sizes > outlier * median
    colours = np.where(is_large, theme.ACCENT["b"], theme.GONE)
    channels = np.arange(len(sizes))
    fig = go.Figure()
    bar: dict[str, Any] = {"x": channels, "y": sizes, "name": "size of the channel"}
    fig.add_bar(**bar, marker_color=colours, hovertemplate="channel %{x}: size %{y:.3~g}<extra></extra>")
    for name, values, colour, dash in (
        ("error, a scale for each channel", own, theme.ACCENT["a"], "solid"),
        ("error, a scale for channels of one key", shared, theme.LINES["c"][0], "dot"),
    ):
        fig.add_scatter(
            x=channels,
            y=np.asarray(values, dtype=np.float64),
            name=name,
            mode="lines",
            line={"color": colour, "width": 2.5, "dash": dash},
            hovertemplate="channel %{x}: error %{y:.3~g}<extra></extra>",
        )
    fig.update_xaxes(bare(), title_text="channel of the key")
    fig.update_yaxes(bare(), title_text="mean size, error (root mean square)", gridcolor=theme.GRID, showgrid=True)
    errors = f"{float(own.mean()):.3g} with a scale for each channel, {float(shared.mean()):.3g} with one for channels"
    large = f"{int(is_large.sum())} of {len(sizes)} are outliers"
    alt = f"{title or 'Channels'}: {large}; mean error {errors} of a key."
    lay_out(fig, kind=f"channels {len(sizes)}", alt=alt, height=HEIGHT, title=title, above=3 * LEGEND_ROW + 10)
    fig.update_layout(legend_above(3), legend_orientation="v", legend_traceorder="normal")
    header = ("channel", "mean size", "error, scale a channel", "error, scale a group of one key")
    return Drawing(fig, Table(header, (channels, sizes, own, shared)), alt)


def coded_group(
    numbers: Floats,
    codes: Sequence[int],
    restored: Floats,
    levels: Floats,
    names: Sequence[int],
    of: str,
    *,
    title: str = "",
) -> Drawing:
    """The numbers of one group (n,), the levels (2^b,) that codes stand for, and what comes back.

    ``of`` says what the numbers are called by ``names``: positions or channels.
    """
    fig = go.Figure()
    for level in levels if len(levels) <= 16 else ():
        fig.add_hline(y=float(level), line={"color": theme.GRID, "width": 1})
    for name, values, colour, sign in (
        ("the number", numbers, theme.ACCENT["a"], "circle"),
        ("what comes back", restored, theme.ACCENT["b"], "x"),
    ):
        fig.add_scatter(
            x=list(names),
            y=np.asarray(values, dtype=np.float64),
            name=name,
            mode="markers",
            marker={"color": colour, "symbol": sign, "size": 9},
            customdata=list(codes),
            hovertemplate=f"{of} %{{x}}: %{{y:.4~g}}, code %{{customdata}}<extra></extra>",
        )
    fig.update_xaxes(bare(), title_text=of, tickformat="d")
    fig.update_yaxes(bare(), title_text="value")
    worst = float(np.abs(numbers - restored).max())
    alt = f"{title or 'One group'}: {len(numbers)} numbers on {len(levels)} levels, off by at most {worst:.3g}."
    lay_out(fig, kind=f"group {len(numbers)}", alt=alt, height=HEIGHT, title=title, above=LEGEND_ROW + 10)
    fig.update_layout(legend_above(2))
    return Drawing(fig, Table((of, "number", "code", "comes back"), (list(names), numbers, list(codes), restored)), alt)

"""What is saved against what it costs: a point a setup, hollow where another one is better in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, row_table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out
from kvviz.figures.sweep import COLOURS, HEIGHT, SIGNS, beaten
from kvviz.text.signs import escape


@dataclass(frozen=True)
class Setting:
    """One setup: ``saved`` is the share of the full cache's bytes that it does without, ``cost`` what it pays."""

    group: str  # whose colour and sign it has, named in the legend
    label: str
    saved: float  # 0 to 1
    value: float  # on the vertical axis
    mark: str = ""  # written beside the point, such as A


def trade_off(settings: Sequence[Setting], *, axis: str, is_more_better: bool, title: str = "") -> Drawing:
    """Bytes saved (percent, to the right is better) against ``axis``, where more or less is better.

    A setup that another one beats is hollow: no fewer bytes saved, no worse a value, and better in one of the two.
    """
    sign = -1.0 if is_more_better else 1.0
    costs = {id(one): (-one.saved, sign * one.value) for one in settings}
    fig = go.Figure()
    for place, group in enumerate(dict.fromkeys(one.group for one in settings)):
        own = [one for one in settings if one.group == group]
        colour, shape = COLOURS[place % len(COLOURS)], SIGNS[place % len(SIGNS)]
        fig.add_scatter(
            x=[100 * one.saved for one in own],
            y=[one.value for one in own],
            name=escape(group),
            mode="markers+text",
            text=[escape(one.mark) for one in own],
            textposition="top center",
            marker={
                "symbol": [shape + "-open" * beaten(costs[id(one)], costs.values()) for one in own],
                "size": 11,
                "color": colour,
                "line": {"width": 2, "color": colour},
            },
            customdata=np.array([escape(one.label) for one in own]),
            hovertemplate="%{customdata}<br>%{x:.1f} % saved<br>%{y:.3~g}<extra></extra>",
            cliponaxis=False,
        )
    fig.update_xaxes(bare(), title_text="bytes saved (% of the full cache's, at the end)", gridcolor=theme.GRID)
    fig.update_yaxes(bare(), title_text=axis, gridcolor=theme.GRID, showgrid=True)
    alt = f"{title or 'Trade-off'}: {told(settings, costs, axis)}"
    fig.update_layout(showlegend=True, legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"})
    lay_out(fig, kind=f"trade-off {axis}", alt=alt, height=HEIGHT, title=title, above=2 * LEGEND_ROW + 10)
    rows = [(one.group, one.label, one.saved, one.value, beaten(costs[id(one)], costs.values())) for one in settings]
    return Drawing(fig, row_table(("policy", "setup", "bytes saved (share)", axis, "beaten on both"), rows), alt)


def told(settings: Sequence[Setting], costs: dict[int, tuple[float, float]], axis: str) -> str:
    """How many setups no other one beats, and the one of them that saves most."""
    best = [one for one in settings if not beaten(costs[id(one)], costs.values())]
    if not best:
        return "0 setups were measured."
    most = max(best, key=lambda one: (one.saved, -abs(one.value)))
    value = "no value" if np.isnan(most.value) else f"{most.value:.3g}"
    return (
        f"{len(best)} of {len(settings)} setups are beaten by no other; of these {most.label} saves most, "
        f"{most.saved:.0%} of the bytes ({axis}: {value})."
    )

"""What is lost against what is kept: a curve a policy, a point a budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, row_table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out
from kvviz.figures.series import binary_unit
from kvviz.text.signs import escape

HEIGHT = 340
# Okabe and Ito's colours, told apart by colour-blind eyes, and a sign each for black and white
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b08900", "#7a52a6", "#777777")
SIGNS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")


@dataclass(frozen=True)
class Kept:
    """One measured setup: what it held at the end, and the loss of the tokens scored."""

    policy: str  # whose curve it belongs to
    label: str  # such as "budget 64"
    cache_bytes: int
    loss: float  # nats a token


def loss_against_bytes(points: Sequence[Kept], full: Kept, *, title: str = "") -> Drawing:
    """Loss a token against bytes held, lines along the budgets of each policy, the full cache as a dotted line.

    A point that another one beats on both, no more bytes and no more loss, is hollow.
    """
    size, unit = binary_unit(float(max([full.cache_bytes, *(point.cache_bytes for point in points)])))
    fig = go.Figure()
    for place, policy in enumerate(dict.fromkeys(point.policy for point in points)):
        colour, sign = COLOURS[place % len(COLOURS)], SIGNS[place % len(SIGNS)]
        own = sorted((p for p in points if p.policy == policy), key=lambda point: point.cache_bytes)
        signs = [sign + "-open" * is_beaten(point, points) for point in own]
        fig.add_scatter(
            x=[point.cache_bytes / size for point in own],
            y=[point.loss for point in own],
            name=escape(policy),
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"symbol": signs, "size": 10, "color": colour, "line": {"width": 2, "color": colour}},
            text=[escape(point.label) for point in own],
            hovertemplate=f"{escape(policy)}, %{{text}}<br>%{{x:.3g}} {unit}, %{{y:.3f}} nats<extra></extra>",
        )
    fig.add_hline(y=full.loss, line={"color": theme.RULE, "dash": "dot"}, annotation_text="full cache")
    fig.update_xaxes(bare(), title_text=f"held in the cache ({unit})", rangemode="tozero", gridcolor=theme.GRID)
    fig.update_yaxes(bare(), title_text="loss (nats a token)", gridcolor=theme.GRID)
    alt = f"{title or 'Loss against bytes held'}: {told(points, full)}"
    fig.update_layout(legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"})
    lay_out(fig, kind="loss against bytes", alt=alt, height=HEIGHT, title=title, above=2 * LEGEND_ROW)
    rows = [(p.policy, p.label, p.cache_bytes, p.loss) for p in (*points, full)]
    return Drawing(fig, row_table(("policy", "point", "bytes held", "loss (nats a token)"), rows), alt)


def is_beaten(point: Kept, points: Sequence[Kept]) -> bool:
    """Whether another point has no more of both, and less of one."""
    return beaten((point.cache_bytes, point.loss), [(other.cache_bytes, other.loss) for other in points])


def beaten(costs: tuple[float, float], others: Iterable[tuple[float, float]]) -> bool:
    """Whether something else costs no more of either, and less of one."""
    return any(one <= costs[0] and two <= costs[1] and (one, two) != costs for one, two in others)


def told(points: Sequence[Kept], full: Kept) -> str:
    """The best and the worst point at the least memory, in words."""
    if not points:
        return "nothing was measured yet."
    least = min(points, key=lambda point: point.cache_bytes).cache_bytes
    there = [point for point in points if point.cache_bytes <= 1.1 * least]
    best, worst = (choose(there, key=lambda point: point.loss) for choose in (min, max))
    words = f"at {least / full.cache_bytes:.0%} of the bytes {best.policy} loses {best.loss - full.loss:.3g} nats"
    return words + ("." if best == worst else f" and {worst.policy} {worst.loss - full.loss:.3g}.")

"""Scores of tokens beside each other: who stays and who goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table
from kvviz.figures.frame import LEGEND_ROW, TOKEN_TITLE, bare, lay_out, legend_above, short, swatch, token_axis
from kvviz.figures.scales import unseen
from kvviz.text.counting import plural

HEIGHT = 280
LOG_TICKS = [digit * 10.0**power for power in range(-4, 5) for digit in (1, 3)]  # plotly names digits alone


def score_bars(
    scores: NDArray[np.floating],
    held: NDArray[np.bool_],
    labels: Sequence[str],
    *,
    y_title: str,
    x_title: str = TOKEN_TITLE,
    side: theme.Side = "a",
    is_log: bool = False,
    cut: float | None = None,
    held_words: str = "still in the cache at the end",
    title: str = "",
) -> Drawing:
    """One bar a token, (T,) scores and whether it is still held; ``labels`` are distinct and not escaped.

    ``is_log`` draws them on a logarithmic axis, on which a score of 0 has no bar: a sink's sum hides all others. A
    token without a score (NaN) has none either. ``cut`` is the lowest score that is enough to stay, a line; and
    ``held_words`` say when the tokens in colour are held.
    """
    if not len(scores) == len(held) == len(labels):
        raise ValueError(f"{len(scores)} scores, {len(held)} marks and {len(labels)} labels do not fit each other.")
    colours = np.where(held, theme.ACCENT[side], theme.GONE)
    bars = go.Bar(
        x=[short(label) for label in labels],
        y=np.asarray(scores, dtype=np.float32),
        hovertemplate="%{x}: %{y:.3~g}<extra></extra>",
        marker={"color": colours.tolist(), "line": {"width": 0}},
        showlegend=False,
    )
    fig = go.Figure([bars, swatch("in the cache", theme.ACCENT[side]), swatch("evicted", theme.GONE)])
    fig.update_xaxes(token_axis(len(labels), x_title), tickangle=-90)
    fig.update_yaxes(bare(), title_text=y_title, rangemode="tozero", type="log" if is_log else "linear")
    if is_log:
        fig.update_yaxes(tickvals=LOG_TICKS, ticktext=[f"{value:g}" for value in LOG_TICKS])
    best = labels[int(np.nanargmax(scores))] if np.isfinite(scores).any() else "none"
    alt = (
        f"{title or y_title}: {int(np.sum(held))} of {plural(len(scores), 'token')} {held_words}; the highest bar is "
        f"that of {best!r}."
    )
    if cut is not None:
        mark_cut(fig, cut)
        alt = f"{alt[:-1]}; the cut is at {cut:.3g}."
    lay_out(
        fig,
        kind=f"scores {len(scores)}",
        alt=alt,
        height=HEIGHT,
        title=title,
        above=30 if cut is None else 3 * LEGEND_ROW,
    )
    fig.update_layout(legend_above(2), bargap=0.1)
    return Drawing(fig, Table(("token", y_title, f"{held_words} (1 = yes)"), (labels, scores, held)), alt)


def mark_cut(fig: go.Figure, cut: float) -> None:
    """A line at the lowest score that is enough, and its entry in the legend."""
    look = {"color": theme.RULE, "width": 1.5, "dash": "dash"}
    fig.add_hline(y=cut, line=look)
    fig.add_trace(unseen({"mode": "lines", "line": look, "name": "lowest score that stays", "showlegend": True}))

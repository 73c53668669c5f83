"""The time of a step and the bytes it reads, against the tokens in its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, row_table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out, legend_above
from kvviz.figures.series import legend_words

HEIGHT = 300
MIB = 2**20
X_TITLE = "tokens read before the step"


@dataclass(frozen=True)
class Steps:
    """The steps of one setup at several lengths, all tuples of one length."""

    label: str
    side: theme.Side
    tokens: tuple[int, ...]
    seconds: tuple[float, ...]  # median of a step
    low: tuple[float, ...]
    high: tuple[float, ...]
    cache_bytes: tuple[int, ...]

    def limits(self, weight_bytes: int, bandwidth: float) -> list[float]:
        """Seconds that reading weights and cache takes at ``bandwidth`` bytes per second."""
        return [(weight_bytes + held) / bandwidth for held in self.cache_bytes]


def step_times(every: Sequence[Steps], weight_bytes: int, bandwidth: float, *, title: str = "") -> Drawing:
    """Milliseconds a step, with the range of the repeats, and dotted the least that reading alone takes."""
    fig = go.Figure()
    for steps in every:
        colour, limits = theme.ACCENT[steps.side], steps.limits(weight_bytes, bandwidth)
        fig.add_scatter(
            x=steps.tokens,
            y=[1000 * seconds for seconds in steps.seconds],
            error_y={
                "array": [1000 * (high - mid) for high, mid in zip(steps.high, steps.seconds, strict=True)],
                "arrayminus": [1000 * (mid - low) for low, mid in zip(steps.low, steps.seconds, strict=True)],
                "thickness": 1,
            },
            name=legend_words(steps.label),
            mode="lines+markers",
            line={"color": colour, "width": 2.5, "dash": theme.DASH[steps.side]},
            marker={"size": 7},
            hovertemplate="%{x:,} tokens: %{y:.3g} ms<extra></extra>",
        )
        fig.add_scatter(
            x=steps.tokens,
            y=[1000 * limit for limit in limits],
            name=f"{steps.side.upper()}: reading weights and cache alone",
            mode="lines",
            line={"color": colour, "width": 1.5, "dash": "dot"},
            hovertemplate="reading alone: %{y:.3g} ms<extra></extra>",
        )
    told = "; ".join(f"{s.label}: {1000 * s.seconds[-1]:.3g} ms at {s.tokens[-1]:,} tokens" for s in every)
    alt = f"{title or 'Time of a step'}; {told}."
    framed(fig, "step times", alt, title, "time of a step (ms)")
    header = ("setup", "tokens", "ms", "least ms", "most ms", "ms to read alone")
    return Drawing(fig, row_table(header, [row for s in every for row in time_rows(s, weight_bytes, bandwidth)]), alt)


def time_rows(steps: Steps, weight_bytes: int, bandwidth: float) -> list[tuple[object, ...]]:
    numbers = zip(steps.seconds, steps.low, steps.high, steps.limits(weight_bytes, bandwidth), strict=True)
    return [(steps.label, tokens, *(1000 * n for n in row)) for tokens, row in zip(steps.tokens, numbers, strict=True)]


def bytes_read(every: Sequence[Steps], weight_bytes: int, *, title: str = "") -> Drawing:
    """MiB that a step reads: the weights, the same at every length, and the cache of each setup."""
    fig, lengths = go.Figure(), every[0].tokens
    for steps in every:
        fig.add_scatter(
            x=steps.tokens,
            y=[held / MIB for held in steps.cache_bytes],
            name=legend_words(f"cache, {steps.label}"),
            mode="lines+markers",
            line={"color": theme.ACCENT[steps.side], "width": 2.5, "dash": theme.DASH[steps.side]},
            marker={"size": 7},
            hovertemplate="cache at %{x:,} tokens: %{y:.4g} MiB<extra></extra>",
        )
    fig.add_scatter(
        x=lengths,
        y=[weight_bytes / MIB] * len(lengths),
        name="weights",
        mode="lines",
        line={"color": theme.RULE, "width": 2.5},
        hovertemplate="weights: %{y:.4g} MiB<extra></extra>",
    )
    told = "; ".join(f"cache, {s.label}: {s.cache_bytes[-1] / MIB:.3g} MiB at {s.tokens[-1]:,} tokens" for s in every)
    alt = f"{title or 'Bytes a step reads'}; weights: {weight_bytes / MIB:.4g} MiB; {told}."
    framed(fig, "bytes read", alt, title, "read in a step (MiB)")
    rows = [
        (s.label, tokens, held, weight_bytes)
        for s in every
        for tokens, held in zip(s.tokens, s.cache_bytes, strict=True)
    ]
    return Drawing(fig, row_table(("setup", "tokens", "cache bytes", "weight bytes"), rows), alt)


def framed(fig: go.Figure, kind: str, alt: str, title: str, y_title: str) -> None:
    """Axes from zero, legend and frame."""
    fig.update_xaxes(bare(), title_text=X_TITLE, rangemode="tozero", tickformat=",d")
    fig.update_yaxes(bare(), title_text=y_title, rangemode="tozero", showgrid=True, gridcolor=theme.GRID)
    rows = len(fig.data) + sum(trace["name"].count("<br>") for trace in fig.data)
    lay_out(fig, kind=kind, alt=alt, height=HEIGHT, title=title, above=10 + LEGEND_ROW * rows)
    fig.update_layout(legend_above(len(fig.data)), legend_orientation="v")

"""Lines along the text or over the layers: what the cache holds, what a prediction costs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Column, Drawing, Table
from kvviz.figures.frame import ALL_TICKS, LEGEND_ROW, PROMPT_ENDS, STEP_TITLE, bare, lay_out, legend_above, step_ticks
from kvviz.text.counting import plural
from kvviz.text.signs import escape

Numbers = NDArray[Any]  # whole or floating
Series = tuple[str, theme.LineName, Numbers]  # label, whose colour, one value per step

HEIGHT = 280
LEGEND_WIDTH = 54  # characters a line; plotly cuts what is longer than the figure is wide
STAIRS = 64  # up to so many steps each is drawn as a stair
BINARY_UNITS = ((1, "B"), (1024, "KiB"), (1024**2, "MiB"), (1024**3, "GiB"), (1024**4, "TiB"))


def entries_over_time(
    series: Sequence[Series],
    unit: Literal["entries", "bytes"] = "entries",
    *,
    prompt_tokens: int | None = None,
    count_from: int = 0,
    labels: Sequence[str] | None = None,
    title: str = "",
) -> Drawing:
    """What the cache holds after each step, (T,) per line; bytes are shown in the binary unit that fits.

    The table has bytes; its rows are the steps, numbered from ``count_from`` or named by ``labels``.
    """
    largest = max((float(np.max(values)) for _, _, values in series), default=0.0)
    size, name = binary_unit(largest) if unit == "bytes" else (1, "entries")
    scaled: list[Series] = [(label, side, np.asarray(v) / size if size > 1 else v) for label, side, v in series]
    shape = "hv" if max((len(values) for _, _, values in series), default=0) <= STAIRS else "linear"
    shown = ",d" if unit == "entries" else ".4~g"
    fig = go.Figure([line(*one, count_from, f"%{{y:{shown}}} {name}", shape=shape) for one in scaled])
    ticks = step_ticks(int(largest) if size == 1 else ALL_TICKS + 1)
    fig.update_yaxes(ticks, title=f"held in the cache ({name})", rangemode="tozero")
    ends = [f"{label}: {amount(float(v[-1]), name)}" for label, _, v in scaled if len(v)]
    alt = f"{title or 'Cache over time'}; held after the last step: {'; '.join(ends) or 'nothing'}."
    line_frame(fig, f"held {unit}", alt, title, prompt_tokens, count_from)
    return Drawing(fig, series_table("step", series, count_from, labels), alt)


def amount(value: float, unit: str) -> str:
    return plural(int(value), "entry") if unit == "entries" else f"{value:.4g} {unit}"


def binary_unit(largest_bytes: float) -> tuple[int, str]:
    """The largest of B, KiB, MiB, … that is not larger than the value: its size in bytes and its name."""
    return [unit for unit in BINARY_UNITS if unit[0] <= max(largest_bytes, 1)][-1]


def series_lines(
    series: Sequence[Series],
    *,
    y_title: str,
    x_title: str = "step",
    smooth_over: int = 1,
    prompt_tokens: int | None = None,
    count_from: int = 0,
    labels: Sequence[str] | None = None,
    title: str = "",
    from_zero: bool = False,
    length: int | None = None,
    is_every: bool = False,
) -> Drawing:
    """One line per series of one value per step, such as nats per token; NaN leaves a gap.

    With ``smooth_over`` above 1 each point is the mean of that many values around it, and the axis says so; the table
    has the values themselves, and with ``is_every`` they are drawn too, as faint dots. Its rows are the steps, numbered
    from ``count_from`` or named by ``labels``. ``length`` is that of the axis, where lines are still to grow.
    """
    smoothed: list[Series] = [(label, side, running_mean(v, smooth_over)) for label, side, v in series]
    fig = go.Figure([line(*one, count_from, f"%{{y:.3~g}} {y_title}") for one in smoothed])
    if is_every:
        fig.add_traces([dots(side, values, count_from) for _, side, values in series])
    note = f", running mean of {smooth_over} values" if smooth_over > 1 else ""
    fig.update_yaxes(title=y_title + note, rangemode="tozero" if from_zero else "normal")
    means = [f"{label} {float(np.nanmean(v)):.3g}" for label, _, v in series if np.isfinite(v).any()]
    alt = f"{title or y_title}, one value per {noun_of(x_title)}; mean: {', '.join(means) or 'no value'}."
    line_frame(fig, y_title, alt, title, prompt_tokens, count_from, x_title, length)
    return Drawing(fig, series_table(noun_of(x_title), series, count_from, labels), alt)


def noun_of(axis_title: str) -> str:
    """What stands along an axis: ``query`` of ``query (position)``."""
    return axis_title.partition(" (")[0]


def series_table(
    places: str, series: Sequence[Series], count_from: int = 0, labels: Sequence[str] | None = None
) -> Table:
    """A row a place along the axis, a column a line; a line that ends early has empty cells below its end."""
    longest = max((len(values) for _, _, values in series), default=0)
    names = range(count_from, count_from + longest) if labels is None else labels
    return Table((places, *(label for label, _, _ in series)), (names, *(filled(v, longest) for _, _, v in series)))


def filled(values: Numbers, count: int) -> Column:
    """The values as they are, with empty cells where there are fewer than ``count``."""
    return values if len(values) == count else [*values, *[""] * (count - len(values))]


def running_mean(values: Numbers, width: int) -> Numbers:
    """The mean of ``width`` values around each place, fewer at the ends; NaN is left out."""
    numbers = np.asarray(values, dtype=np.float64)
    if width <= 1 or not len(numbers):
        return numbers
    there = np.isfinite(numbers)
    totals = np.concatenate([[0.0], np.where(there, numbers, 0).cumsum()])
    counts = np.concatenate([[0], there.cumsum()])
    places = np.arange(len(numbers))
    start = np.maximum(places - (width - 1) // 2, 0)
    end = np.minimum(places + width // 2 + 1, len(numbers))
    count = counts[end] - counts[start]
    mean: Numbers = np.divide(totals[end] - totals[start], count, out=np.full(len(numbers), np.nan), where=count > 0)
    return mean


def line(
    label: str, side: theme.LineName, values: Numbers, count_from: int, hover: str, shape: str = "linear"
) -> go.Scatter:
    """One line in its colour; B is dashed and drawn over A, so equal lines are seen to be two."""
    colour, dash = theme.LINES[side]
    return go.Scatter(
        x=np.arange(len(values)) + count_from,
        y=values,
        name=legend_words(label),
        mode="lines" if len(values) > 1 else "markers",
        line={"color": colour, "width": 2.5, "dash": dash, "shape": shape},
        hovertemplate=hover + "<extra></extra>",
    )


def dots(side: theme.LineName, values: Numbers, count_from: int) -> go.Scatter:
    """Every value by itself, behind the lines."""
    return go.Scatter(
        x=np.arange(len(values)) + count_from,
        y=np.asarray(values, dtype=np.float32),
        mode="markers",
        marker={"color": theme.LINES[side][0], "size": 3, "opacity": 0.35},
        hoverinfo="skip",
        showlegend=False,
        zorder=-1,
    )


def legend_words(label: str) -> str:
    """The label of a line, escaped, in as many lines as it needs."""
    return "<br>".join(map(escape, textwrap.wrap(label, LEGEND_WIDTH)))


def mark_prompt(fig: go.Figure, step: float) -> None:
    """A vertical line after the last step of the prompt."""
    fig.add_vline(x=step, line={"color": theme.RULE, "width": 1, "dash": "dot"})
    fig.add_annotation(
        text=PROMPT_ENDS,
        showarrow=False,
        font={"size": 11},
        textangle=-90,
        x=step,
        xanchor="right",
        y=0.02,
        yref="y domain",
        yanchor="bottom",
    )


def line_frame(
    fig: go.Figure,
    kind: str,
    alt: str,
    title: str,
    prompt_tokens: int | None,
    count_from: int,
    x_title: str = "step",
    length: int | None = None,
) -> None:
    """Axes, prompt mark, legend and frame of a line figure."""
    named = [trace for trace in fig.data if trace["showlegend"] is not False]
    is_growing, length = length is not None, length or max((len(trace["y"]) for trace in named), default=0)
    across = [count_from - 0.5, count_from + length - 0.5]
    ticks = step_ticks(length) | ({"range": across} if length == 1 or is_growing else {})
    fig.update_xaxes(bare() | ticks, title=STEP_TITLE if x_title == "step" else x_title)
    fig.update_yaxes(bare() | {"showgrid": True, "gridcolor": theme.GRID})
    if prompt_tokens is not None and 0 < prompt_tokens < length:
        mark_prompt(fig, prompt_tokens - 0.5 + count_from)
    more_lines = sum(trace["name"].count("<br>") for trace in named)
    above = 10 + LEGEND_ROW * len(named) + 16 * more_lines
    lay_out(fig, kind=f"{kind} {length}", alt=alt, height=HEIGHT, title=title, above=above)
    fig.update_layout(legend_above(len(named)), hovermode="x unified")

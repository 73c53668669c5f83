"""The picture of the cache page: which token is in the cache at which step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table
from kvviz.figures.frame import (
    LEGEND_ROW,
    PROMPT_ENDS,
    STEP_TITLE,
    TOKEN_TITLE,
    bare,
    lay_out,
    legend_above,
    short,
    step_ticks,
    swatch,
    token_axis,
)
from kvviz.figures.pooling import pool_factor
from kvviz.text.counting import plural

Codes = NDArray[np.uint8]
Ints = NDArray[np.integer]

HEIGHT = 460


def lifetimes(
    evicted_at: Ints,
    labels: Sequence[str],
    *,
    head: int = 0,
    role_of: Codes | None = None,
    side: theme.Side = "a",
    count_from: int = 0,
    prompt_tokens: int | None = None,
    title: str = "",
) -> Drawing:
    """Rows are steps, columns tokens: coloured while a token is in the cache, grey once it is gone, blank before.

    ``evicted_at`` (T,) or (H, T): the first step that cannot see the token, T if it is still there; of the H KV heads
    of a layer ``head`` is drawn, and the table has all. ``role_of`` (T,T) holds for every step and token the code of
    its role (``role_codes``); without it a held token has the accent of ``side``. ``labels`` are the T distinct labels,
    numbered from ``count_from`` as the steps are. A line marks the last step of the prompt. More than 512 tokens are
    thinned: every n-th step and token is drawn, exactly as it is.
    """
    table = lifetimes_table(evicted_at, labels)
    evicted_at = np.atleast_2d(evicted_at)[head]
    count = len(evicted_at)
    codes = cache_codes(evicted_at, role_of)
    every = slice(None, None, pool_factor(count))
    notice = f"Only one in {every.step} steps and one in {every.step} tokens is drawn." if every.step > 1 else ""
    names = [short(label) for label in labels][every]
    cells: dict[str, Any] = {"z": codes[every, every], "x": names, "y": np.arange(count)[every] + count_from}
    colours, hover = colouring(role_of is None, side), "step %{y}<extra></extra>"
    heat = go.Heatmap(**cells, **colours, showscale=False, hovertemplate=hover)
    entries = legend(codes, role_of is None, side)
    fig = go.Figure([heat, departures(evicted_at, names, every, count_from), *(swatch(*entry) for entry in entries)])
    lay_axes(fig, names, count, count_from)
    if prompt_tokens is not None and 0 < prompt_tokens < count:
        mark_prompt(fig, prompt_tokens - 0.5 + count_from)
    alt = lifetimes_alt(evicted_at, count_from, title)
    above = LEGEND_ROW * max(2, -(-len(entries) // 2))  # a narrow figure has two entries of the legend in a row
    lay_out(fig, kind=f"lifetimes {count}", alt=alt, height=HEIGHT, title=title, notice=notice, above=above)
    fig.update_layout(legend_above(len(entries)), hovermode="x unified")
    return Drawing(fig, table, alt)


def lifetimes_table(evicted_at: Ints, labels: Sequence[str]) -> Table:
    """A row a token, a column a KV head, from (T,) or (H, T): the step at which it left, counted from 0."""
    still = f"(T = {len(labels)}: still held)"
    if evicted_at.ndim == 1:
        return Table(("token", f"evicted_at {still}"), (labels, evicted_at))
    heads = [f"evicted_at, KV head {head} {still}" for head in range(len(evicted_at))]
    return Table(("token", *heads), (labels, evicted_at.T))


def cache_codes(evicted_at: Ints, role_of: Codes | None = None) -> Codes:
    """(T,T), row = step, column = token: 0 before the token came, its role while it is held, ``GONE_CODE`` after."""
    step = np.arange(len(evicted_at))[:, None]
    held = np.uint8(theme.OTHER_CODE) if role_of is None else role_of
    codes = np.where(step < evicted_at, held, np.uint8(theme.GONE_CODE))
    return np.where(step < step.T, np.uint8(0), codes).astype(np.uint8)


def role_codes(role_of: Callable[[int, int], str], tokens: int) -> Codes:
    """(T,T) codes of ``role_of(position, newest)``, row = newest; 0 where the position is still to come."""
    codes = np.zeros((tokens, tokens), dtype=np.uint8)
    for newest in range(tokens):
        roles = [role_of(position, newest) for position in range(newest + 1)]
        codes[newest, : newest + 1] = [theme.HELD_CODES.get(role, theme.OTHER_CODE) for role in roles]
    return codes


def departures(evicted_at: Ints, names: Sequence[str], every: slice, count_from: int) -> go.Scatter:
    """An invisible line through where each token leaves, whose hover says when: T strings instead of T².

    A line is one path; as many markers cost the browser a quarter of its time.
    """
    count = len(evicted_at)
    stories = [
        f"in the cache from step {came + count_from}"
        + (" to the end" if left >= count else f", evicted at step {int(left) + count_from}")
        for came, left in enumerate(evicted_at)
    ]
    return go.Scatter(
        x=names,
        y=np.minimum(evicted_at, count - 1)[every] + count_from,
        text=stories[every],
        mode="lines",
        line={"color": theme.CLEAR, "width": 1},
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def colouring(plain: bool, side: theme.Side) -> dict[str, Any]:
    """One flat colour per code."""
    roles = [theme.ACCENT[side] if plain else role.colour for role in theme.ROLES]
    colours = [theme.CLEAR, *roles, theme.GONE]
    edges = [(place / len(colours), (place + 1) / len(colours)) for place in range(len(colours))]
    stops = [(edge, colour) for pair, colour in zip(edges, colours, strict=True) for edge in pair]
    return {"colorscale": stops, "zmin": -0.5, "zmax": len(colours) - 0.5}


def legend(codes: Codes, plain: bool, side: theme.Side) -> list[tuple[str, str]]:
    """Name and colour of every state that occurs."""
    there = set(np.unique(codes).tolist())
    held = [("in the cache", theme.ACCENT[side])] if plain else []
    if not plain:
        held = [(role.label, role.colour) for code, role in enumerate(theme.ROLES, 1) if code in there]
    return held + ([("evicted", theme.GONE)] if theme.GONE_CODE in there else [])


def lay_axes(fig: go.Figure, names: Sequence[str], count: int, count_from: int) -> None:
    """Tokens to the right, steps downwards, no room around the cells."""
    # plotly backs the spike with white where the ground is clear, which glares on a dark page
    across, down = [-0.5, len(names) - 0.5], [count - 0.5 + count_from, count_from - 0.5]
    fig.update_xaxes(token_axis(len(names), TOKEN_TITLE), tickangle=-90, showspikes=False, range=across)
    title = {"text": STEP_TITLE, "standoff": 8}
    fig.update_yaxes(bare() | step_ticks(count), title=title, range=down)


def mark_prompt(fig: go.Figure, step: float) -> None:
    """A horizontal line below the last step of the prompt."""
    fig.add_hline(y=step, line={"color": theme.RULE, "width": 1, "dash": "dot"})
    fig.add_annotation(
        text=PROMPT_ENDS,
        showarrow=False,
        font={"size": 11},
        x=1,
        xref="x domain",
        xanchor="right",
        y=step,
        yanchor="bottom",
    )


def lifetimes_alt(evicted_at: Ints, count_from: int, title: str) -> str:
    """How many tokens the cache holds at the end, and when the first was evicted."""
    count = len(evicted_at)
    held = int((evicted_at >= count).sum())
    head = f"{title}: after" if title else "After"
    start = f"{head} step {count - 1 + count_from} the cache holds {held} of {plural(count, 'token')}"
    if held == count:
        return f"{start}; none has been evicted."
    return f"{start}; the first eviction is at step {int(evicted_at.min()) + count_from}."

"""Who looks at whom: rows are queries, columns are keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table, matrix_table
from kvviz.figures.frame import lay_out, short, token_axis
from kvviz.figures.pooling import LIMIT, pool, pool_labels, pool_notice
from kvviz.figures.scales import Scale, ScaleName
from kvviz.measures.sinks import SINKS
from kvviz.text.counting import plural

Floats = NDArray[np.floating]

KEY_TITLE = "key: attended to (position, token)"
QUERY_TITLE = "query: attends from (row i predicts token i + 1)"
WEIGHT = "attention weight (0 to 1)"
SMALL_HEIGHT = 230
MAP_HEIGHT = 400  # near square in half a page, and it fills whatever width there is


def attention_map(
    weights: Floats,
    labels: Sequence[str],
    *,
    scale: ScaleName = "log",
    top: float = 1.0,
    sinks: int = SINKS,
    title: str = "",
    first_query: int = 0,
    limit: int = LIMIT,
    is_small: bool = False,
) -> Drawing:
    """The weights of one head, (Q, T) shares of 1; NaN = that query could not see that key, drawn blank.

    Row i holds the attention of position ``first_query`` + i, from whose output the next token is predicted. Two maps
    with equal ``scale`` and ``top`` have equal colours. ``no_sinks`` leaves the first ``sinks`` keys out of the picture
    (see ``shared_top`` for the maximum of the rest). ``labels`` are the T distinct labels, not escaped. Beyond
    ``limit`` tokens blocks of them share a cell; a map of 512 is 1.8 MB.
    """
    shown = without_sinks(weights, sinks) if scale == "no_sinks" else weights
    notices = [left_out(sinks) if scale == "no_sinks" else ""]
    pooled, factor = pool(shown, limit)
    notices.append(pool_notice(factor, "their largest weight"))
    shading = Scale(scale, top)
    fig = go.Figure([heat(pooled, labels, first_query, factor, shading), shading.bar()])
    if scale == "no_sinks" and sinks:
        mark_columns(fig, sinks / factor)
    alt = attention_alt(weights, labels, sinks, title, first_query)
    map_frame(fig, pooled.shape, "attention", alt, title, " ".join(filter(None, notices)), WEIGHT)
    return Drawing(small(fig) if is_small else fig, map_table(weights, labels, first_query), alt)


def map_table(values: NDArray[Any], labels: Sequence[str], first_query: int = 0) -> Table:
    """A row a query, a column a key, (Q, T)."""
    queries, keys = values.shape
    return matrix_table("query", labels[first_query : first_query + queries], labels[:keys], values)


def heat(z: Floats, labels: Sequence[str], first_query: int, factor: int, shading: Scale) -> go.Heatmap:
    """The cells of a map of weights."""
    return go.Heatmap(
        **cells(z, labels, first_query, factor),
        zmin=0,
        zmax=shading.top,
        colorscale=shading.stops(),
        hovertemplate="query %{y}<br>key %{x}<br>weight %{z:.3~g}<extra></extra>",
    )


def cells(z: NDArray[Any], labels: Sequence[str], first_query: int = 0, factor: int = 1) -> dict[str, Any]:
    """What all maps over queries and keys have in common."""
    rows, columns = pool_labels(labels[first_query:], factor), pool_labels(labels, factor)
    if len(rows) < z.shape[0] or len(columns) < z.shape[1]:
        raise ValueError(f"{len(labels)} labels are too few for a map of shape {z.shape} from query {first_query} on.")
    return {
        "z": z,
        "x": [short(label) for label in columns[: z.shape[1]]],
        "y": [short(label) for label in rows[: z.shape[0]]],
        "showscale": False,
        "hoverongaps": False,
    }


def map_frame(
    fig: go.Figure, shape: tuple[int, ...], kind: str, alt: str, title: str, notice: str = "", bar_title: str = ""
) -> go.Figure:
    """Axes and frame of a map over queries and keys, first query at the top."""
    fig.update_xaxes(token_axis(shape[1], KEY_TITLE), tickangle=-90)
    fig.update_yaxes(token_axis(shape[0], QUERY_TITLE), autorange="reversed")
    kind = f"{kind} {shape[0]}×{shape[1]}"
    lay_out(fig, kind=kind, alt=alt, height=MAP_HEIGHT, title=title, notice=notice, bar_title=bar_title)
    return fig.update_layout(plot_bgcolor=theme.GROUND)


def without_sinks(weights: Floats, sinks: int) -> Floats:
    """A copy whose first ``sinks`` columns are blank."""
    rest = np.array(weights, dtype=np.float32)
    rest[:, :sinks] = np.nan
    return rest


def left_out(sinks: int) -> str:
    return f"Left out: {first_keys(sinks)}." if sinks else ""


def first_keys(sinks: int) -> str:
    return "the first key" if sinks == 1 else f"the first {plural(sinks, 'key')}"


def mark_columns(fig: go.Figure, columns: float) -> None:
    """Shade the columns that are left out, so that they do not read as evicted."""
    right = columns - 0.5
    fig.add_shape(
        type="rect",
        x0=-0.5,
        x1=right,
        y0=0,
        y1=1,
        yref="y domain",
        fillcolor=theme.GONE,
        line_width=0,
        layer="above",
    )


def attention_alt(weights: Floats, labels: Sequence[str], sinks: int, title: str, first_query: int) -> str:
    """The sentence that stands for the map."""
    head = f"{title}: attention" if title else "Attention"
    head += f" from {plural(weights.shape[0], 'query')} to {plural(weights.shape[1], 'key')}"
    if not np.isfinite(weights).any():
        return f"{head}; no weight was recorded."
    share = float(np.nansum(weights[:, :sinks], axis=1).mean())
    query, key = np.unravel_index(int(np.nanargmax(weights)), weights.shape)
    return (
        f"{head}; on average a query gives {share:.1%} of its attention to {first_keys(sinks)}; the "
        f"largest single weight, {float(weights[query, key]):.3g}, is from query "
        f"{labels[first_query + int(query)]!r} to key {labels[int(key)]!r}."
    )


def visibility(
    mask: NDArray[np.bool_], labels: Sequence[str], *, title: str = "", first_query: int = 0, is_small: bool = False
) -> Drawing:
    """Which key each query may see, (Q, T) bool, before any weight is computed; a small one names few tokens."""
    z = np.asarray(mask, dtype=np.uint8)
    if max(z.shape) > LIMIT:
        raise ValueError(f"A mask of {z.shape} is too large to draw cell by cell; draw at most {LIMIT} tokens.")
    gap = 1 if max(z.shape) <= 64 else 0
    colours = [(0.0, theme.CLEAR), (0.5, theme.CLEAR), (0.5, theme.ACCENT["a"]), (1.0, theme.ACCENT["a"])]
    hover = "query %{y}<br>key %{x}<br>may see (1 = yes, 0 = no): %{z}<extra></extra>"
    drawn = cells(z, labels, first_query)
    fig = go.Figure(go.Heatmap(**drawn, zmin=0, zmax=1, colorscale=colours, xgap=gap, ygap=gap, hovertemplate=hover))
    seen = z.sum(axis=1)
    alt = (
        f"The keys that each of {plural(z.shape[0], 'query')} may see: the last query sees {int(seen[-1])}, and no "
        f"query sees more than {int(seen.max())}."
    )
    map_frame(fig, z.shape, "visibility", alt, title)
    return Drawing(small(fig) if is_small else fig, map_table(z, labels, first_query), alt)


def small(fig: go.Figure) -> go.Figure:
    """A map for a row of several: low, with few ticks and short titles."""
    fig.update_layout(height=SMALL_HEIGHT + (40 if len(fig.data) > 1 else 0))
    fig.update_xaxes(tickmode="auto", nticks=6, title_text="key (position)", tickangle=0)
    return fig.update_yaxes(tickmode="auto", nticks=6, title_text="query (position)")

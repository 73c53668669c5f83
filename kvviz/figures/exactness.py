"""How far two answers are apart, which entries of a cache changed, and what a block of rows may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table, matrix_table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out, legend_above, short, swatch, token_axis
from kvviz.figures.scales import EVEN_SHADES, colour_bar
from kvviz.figures.series import legend_words, series_table
from kvviz.text.counting import plural

Floats = NDArray[np.floating]

HEIGHT, ROW, LEAST = 330, 9, 220  # pixels
FLOOR = 1e-7  # nats; smaller gaps lie on the lower edge of a logarithmic axis
GAP_TITLE = "largest difference in log-probability (nats)"
CHANGE_FLOOR = 1e-6  # changes below it share the darkest colour


class GapLine(NamedTuple):
    """Gaps of one way of reusing a cache, (q,) in nats; ``broken`` is the first row whose likeliest token differs."""

    label: str
    colour: theme.LineName
    gaps: Floats
    broken: int | None = None


def gap_lines(lines: Sequence[GapLine], first: int, allowed: float, *, title: str = "") -> Drawing:
    """One line each on a logarithmic axis, a cross where the answer breaks, and what rounding may change.

    ``first`` is the position of the first row; gaps below 1e-7 are drawn there, the table has them as they are.
    """
    fig = go.Figure()
    for one in lines:
        add_gap_line(fig, one, first)
    fig.add_hline(y=allowed, line={"color": theme.RULE, "width": 1.5, "dash": "dot"})
    fig.add_annotation(
        text="rounding alone: below this line",
        showarrow=False,
        font={"size": 11},
        x=0.01,
        xref="paper",
        xanchor="left",
        y=np.log10(allowed),
        yanchor="bottom",
    )
    length = max(len(one.gaps) for one in lines)
    fig.update_xaxes(bare(), title_text="token that answers (position in the text)", range=[first - 1, first + length])
    ticks: dict[str, Any] = {"exponentformat": "power", "dtick": 1, "showgrid": True, "gridcolor": theme.GRID}
    fig.update_yaxes(bare() | ticks, type="log", title_text=GAP_TITLE)
    told = "; ".join(f"{one.label}: at most {float(one.gaps.max()):.2g}" for one in lines)
    alt = f"{title or 'Gap to the uncached answer, token by token'}, in nats: {told}."
    rows = len(lines) + sum(legend_words(one.label).count("<br>") for one in lines)
    lay_out(fig, kind="gaps", alt=alt, height=HEIGHT, title=title, above=10 + LEGEND_ROW * rows)
    fig.update_layout(legend_above(len(lines)), legend_orientation="v", hovermode="closest")
    series = [(one.label, one.colour, one.gaps) for one in lines]
    return Drawing(fig, series_table("token", series, first), alt)


def add_gap_line(fig: go.Figure, one: GapLine, first: int) -> None:
    colour, dash = theme.LINES[one.colour]
    places, gaps = np.arange(len(one.gaps)) + first, np.maximum(one.gaps, FLOOR)
    fig.add_scatter(
        x=places,
        y=gaps,
        name=legend_words(one.label),
        mode="lines" if len(gaps) > 1 else "markers",
        line={"color": colour, "width": 2, "dash": dash},
        hovertemplate="token %{x}: %{y:.2~g} nats<extra></extra>",
    )
    if one.broken is not None:
        fig.add_scatter(
            x=places[one.broken : one.broken + 1],
            y=gaps[one.broken : one.broken + 1],
            mode="markers",
            marker={"symbol": "x", "size": 11, "color": colour, "line": {"width": 1, "color": theme.RULE}},
            hovertemplate="the answer first changes after token %{x}<extra></extra>",
            showlegend=False,
        )


def change_map(changes: Floats, labels: Sequence[str], *, title: str = "", top: float = 1.0) -> Drawing:
    """How far every layer's entry of every token moved, (L, T) as a share of its length; 0 is drawn blank.

    The colours are logarithmic from 1e-6 to ``top``; the first layer is at the top.
    """
    layers, tokens = changes.shape
    span = np.log10(top / CHANGE_FLOOR)
    shade = np.full(changes.shape, np.nan, dtype=np.float32)
    moved = changes > 0
    shade[moved] = np.clip(np.log10(np.maximum(changes[moved], CHANGE_FLOOR) / CHANGE_FLOOR) / span, 0, 1)
    cells: dict[str, Any] = {"x": [short(label) for label in labels], "y": np.arange(layers), "z": shade}
    heat = go.Heatmap(
        **cells,
        zmin=0,
        zmax=1,
        colorscale=EVEN_SHADES,
        showscale=False,
        hoverongaps=False,
        customdata=np.asarray(changes, dtype=np.float32),
        hovertemplate="layer %{y}<br>token %{x}<br>moved by %{customdata:.2~g} of its length<extra></extra>",
    )
    powers = range(int(np.log10(CHANGE_FLOOR)), int(np.floor(np.log10(top))) + 1)
    places = [(power - np.log10(CHANGE_FLOOR)) / span for power in powers]
    fig = go.Figure([heat, colour_bar(EVEN_SHADES, places, [f"10<sup>{power}</sup>" for power in powers])])
    fig.update_xaxes(token_axis(tokens, "entry of this token (position, text)"), tickangle=-90)
    fig.update_yaxes(bare(), title_text="layer", autorange="reversed", tickformat="d")
    count = int(moved.sum())
    alt = f"{title or 'Changed entries'}: {plural(count, 'entry')} of {changes.size:,} changed."
    bar_title = "change of key or value (share of its length), blank = unchanged"
    height = max(LEAST, 90 + ROW * layers)
    lay_out(fig, kind=f"changes {layers}×{tokens}", alt=alt, height=height, title=title, bar_title=bar_title)
    fig.update_layout(plot_bgcolor=theme.GROUND)
    table = matrix_table("layer", [str(layer) for layer in range(layers)], list(labels), changes)
    return Drawing(fig, table, alt)


def mask_map(visible: NDArray[np.bool_], valid: NDArray[np.bool_], cached: int, *, title: str = "") -> Drawing:
    """A mask of q rows over S + q keys, (q, S + q): seen, hidden because it is later, and hidden by mistake.

    ``valid`` says what a row may see; ``cached`` = S is marked by a line.
    """
    rows, keys = visible.shape
    codes = np.where(visible, 1, np.where(valid, 2, 0)).astype(np.uint8)
    colours = (theme.GROUND, theme.ACCENT["a"], theme.ACCENT["b"])
    scale = [(edge, colour) for place, colour in enumerate(colours) for edge in (place / 3, (place + 1) / 3)]
    names = ("later: hidden", "seen", "earlier, but hidden")
    cells: dict[str, Any] = {"z": codes, "x0": 0, "dx": 1, "y0": 0, "dy": 1}
    heat = go.Heatmap(
        **cells,
        zmin=-0.5,
        zmax=2.5,
        colorscale=scale,
        showscale=False,
        hovertemplate="row %{y}, key %{x}<extra></extra>",
    )
    shown = [swatch(name, colour) for name, colour in zip(names, colours, strict=True)]
    fig = go.Figure([heat, *(shown if (codes == 2).any() else shown[:2])])
    fig.add_vline(x=cached - 0.5, line={"color": theme.RULE, "width": 2, "dash": "dot"})
    fig.update_xaxes(bare(), title_text=f"key: {cached} cached, then the block's own {rows}")
    fig.update_yaxes(bare(), title_text="row of the block", autorange="reversed", tickformat="d")
    hidden = int((codes == 2).sum())
    alt = f"{title or 'Mask'}: {rows} rows over {keys} keys, {hidden:,} of {int(valid.sum()):,} valid pairs hidden."
    lay_out(fig, kind=f"mask {rows}×{keys}", alt=alt, height=LEAST, title=title, above=LEGEND_ROW + 10)
    fig.update_layout(legend_above(2))
    table = matrix_table("row", [str(row) for row in range(rows)], [str(key) for key in range(keys)], visible)
    return Drawing(fig, table, alt)


def angle_map(angles: Floats, labels: Sequence[str], *, title: str = "") -> Drawing:
    """By how much each slot's key is turned in every pair of channels, (n, F) radians, shown within half a turn."""
    degrees = np.degrees(np.angle(np.exp(1j * np.asarray(angles, dtype=np.float64))))
    slots, pairs = degrees.shape
    cells: dict[str, Any] = {
        "x": [short(label) for label in labels],
        "y": np.arange(pairs),
        "z": np.ascontiguousarray(degrees.T, dtype=np.float32),
    }
    heat = go.Heatmap(
        **cells,
        zmin=-180,
        zmax=180,
        colorscale=theme.DIVERGING,
        showscale=False,
        hovertemplate="slot of %{x}<br>pair %{y}: %{z:.1f}°<extra></extra>",
    )
    ticks = ["−180°", "−90°", "0°", "90°", "180°"]
    fig = go.Figure([heat, colour_bar(theme.DIVERGING, [0, 0.25, 0.5, 0.75, 1], ticks)])
    fig.update_xaxes(token_axis(slots, "slot (position, token)"), tickangle=-90)
    fig.update_yaxes(bare(), title_text="pair of channels", autorange="reversed", tickformat="d")
    turned = int((np.abs(angles).max(1) > 0).sum()) if slots else 0
    alt = f"{title or 'Angles'}: {turned} of {plural(slots, 'key')} are turned."
    lay_out(fig, kind=f"angles {slots}×{pairs}", alt=alt, height=LEAST, title=title, bar_title="turned by (degrees)")
    fig.update_layout(plot_bgcolor=theme.GROUND)
    return Drawing(fig, Table(("slot", *(f"pair {p} (radians)" for p in range(pairs))), (list(labels), angles)), alt)

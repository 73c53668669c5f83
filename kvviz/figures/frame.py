"""What every figure shares: transparent ground, token axes, escaped text, alt text, zoom that survives a rerun.

Font and grid colours are left to the page's theme; a figure shown without one gets plotly's own dark text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table
from kvviz.figures.scales import unseen
from kvviz.text.signs import escape

LEGEND_ROW = 22  # pixels
TITLE_WIDTH = 46  # characters a line; plotly does not wrap, and a phone shows about this many
LABEL_WIDTH = 11  # characters of a tick label; a longer one would push the picture off a phone
BAR_HEIGHT = 60  # pixels of a colour bar with its numbers and its title
COMING = "The figure will appear here."
STEP_TITLE = "step (number of the token just read)"
TOKEN_TITLE = "token (position, text)"
PROMPT_ENDS = "prompt ends"
ALL_TICKS = 24  # up to so many tokens every one is named


def lay_out(
    fig: go.Figure,
    *,
    kind: str,
    alt: str,
    height: int,
    title: str = "",
    notice: str = "",
    above: int = 0,
    bar_title: str = "",
) -> go.Figure:
    """Give the figure its frame and return it.

    ``kind`` names the view whose zoom is kept over reruns; ``alt`` is the sentence with the main number; ``notice`` a
    line under the title; ``above`` the pixels a legend needs between the title and the plot; ``bar_title`` says what
    the colour bar measures, and in what unit.
    """
    if bar_title:
        above = BAR_HEIGHT
        name_bar(fig, bar_title)
    title_lines, notice_lines = wrapped(title), textwrap.wrap(notice, TITLE_WIDTH + 8)
    top = 8 + 20 * len(title_lines) + 17 * len(notice_lines)
    heading: dict[str, Any] = {"text": joined(title_lines), "yref": "container", "y": 1, "yanchor": "top"}
    pad = 4 if len(title_lines) < 2 else 23  # plotly draws a title of several lines one line too high
    heading |= {"x": 0, "xanchor": "left", "pad": {"t": pad, "l": 0}, "font": {"size": 15}}
    heading |= {"subtitle": {"text": joined(notice_lines), "font": {"size": 12}}} if notice else {}
    fig.update_layout(
        template=None,  # whichever default another library has set would travel along, 7 kB a figure
        title=heading if title or notice else None,
        height=height + top + above,
        margin={"l": 8, "r": 16, "t": top + above, "b": 8, "pad": 0},
        paper_bgcolor=theme.CLEAR,
        plot_bgcolor=theme.CLEAR,
        uirevision=kind,
        meta={"alt": alt},
        dragmode="zoom",
    )
    return fig


def wrapped(title: str) -> list[str]:
    """Lines of at most ``TITLE_WIDTH`` characters; a title that is too long is first broken at its last ``·``."""
    first, dot, rest = title.rpartition(" · ") if len(title) > TITLE_WIDTH else ("", "", title)
    return [line for part in (first + dot, rest) for line in textwrap.wrap(part, TITLE_WIDTH)]


def coming(height: int = 420) -> Drawing:
    """An empty frame for the time before the first picture; with it the browser fetches what draws figures."""
    fig = lay_out(go.Figure(), kind="coming", alt=COMING, height=height)
    fig.update_layout(xaxis_visible=False, yaxis_visible=False, plot_bgcolor=theme.GROUND)
    return Drawing(fig, Table((), ()), COMING)


def name_bar(fig: go.Figure, title: str) -> None:
    """Write what the colour bar measures above it."""
    fig.add_annotation(
        text=escape(title),
        showarrow=False,
        x=0,
        xref="paper",
        xanchor="left",
        y=1,
        yref="paper",
        yanchor="bottom",
        yshift=36,
        font={"size": 12},
    )


def joined(lines: Sequence[str]) -> str:
    return "<br>".join(escape(line) for line in lines)


def short(label: str) -> str:
    """The label cut to fit an axis, escaped; the number it starts with keeps it distinct."""
    return escape(label if len(label) <= LABEL_WIDTH else label[: LABEL_WIDTH - 1] + "…")


def token_axis(count: int, title: str) -> dict[str, Any]:
    """An axis with one category per token; labels are thinned to what fits unless there are few."""
    ticks: dict[str, Any] = {"tickmode": "linear", "dtick": 1} if count <= ALL_TICKS else {"nticks": 20}
    return {"type": "category", "title": {"text": title, "standoff": 8}, **bare(), **ticks}


def step_ticks(count: int) -> dict[str, Any]:
    """Whole numbers along an axis of steps; few steps would get ticks between them."""
    return {"tickformat": "d"} | ({"dtick": max(1, count // 6)} if count <= ALL_TICKS else {})


def bare() -> dict[str, Any]:
    """Axis settings without grid and zero line, with room for its labels."""
    return {"showgrid": False, "zeroline": False, "automargin": True, "ticks": "outside", "ticklen": 3}


def legend_above(entries: int) -> dict[str, Any]:
    """A horizontal legend between title and plot."""
    box: dict[str, Any] = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}
    still = {"itemclick": False, "itemdoubleclick": False}
    return {"showlegend": entries > 0, "legend": {**box, **still, "bgcolor": theme.CLEAR}}


def swatch(name: str, colour: str, outline: str = theme.RULE) -> go.Scatter:
    """An entry of the legend without data."""
    marker = {"symbol": "square", "size": 11, "color": colour, "line": {"color": outline, "width": 1}}
    return unseen({"marker": marker, "name": name, "showlegend": True})

"""Prompts as a radix tree over tokens, and the blocks of a pool with their reference counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, row_table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out, legend_above, swatch
from kvviz.figures.scales import EVEN_SHADES
from kvviz.text.counting import plural
from kvviz.text.signs import escape

ROW, LEAST, ACROSS = 34, 170, 24  # pixels a prompt, of the least figure; blocks in a row
HIT, EQUAL, OWN = "hit: read from the cache", "equal, but no whole block", "computed"
COLOURS = {HIT: theme.ACCENT["a"], EQUAL: theme.ACCENT["b"], OWN: theme.GONE}


class Branch(NamedTuple):
    """A run of tokens, from ``start`` to before ``end``: how many of them were hits of a later prompt, whether several
    prompts share it, where it begins (the row of the run before it) and what it says."""

    start: int
    end: int
    row: float
    before: float | None
    hit_end: int  # tokens up to here were hits
    is_shared: bool
    text: str
    ends: tuple[int, ...]  # prompts that end here, counted from 1


def radix_tree(branches: Sequence[Branch], *, title: str = "") -> Drawing:
    """Every branch as a bar along the positions, hits in A's colour, what is equal and still computed in B's."""
    fig = go.Figure()
    for kind, colour in COLOURS.items():
        add_bars(fig, [piece for one in branches for piece in pieces(one) if piece[0] == kind], colour)
    for one in branches:
        if one.before is not None:
            fig.add_scatter(**connector(one), mode="lines", line={"color": theme.RULE, "width": 2}, showlegend=False)
    add_words(fig, branches)
    length = max(one.end for one in branches)
    fig.update_xaxes(
        bare(), title_text="token (position in the prompt)", range=[-0.5, length * 1.16 + 1], tickformat="d"
    )
    rows = [one.row for one in branches]
    ends = [max(rows) + 0.5, min(rows) - 0.75]
    fig.update_yaxes(bare(), title_text="prompts", showticklabels=False, ticks="", range=ends)
    fig.add_traces([swatch(kind, colour) for kind, colour in COLOURS.items()])
    hits = sum(piece[2] - piece[1] for one in branches for piece in pieces(one) if piece[0] == HIT)
    total = sum(one.end - one.start for one in branches)
    alt = (
        f"{title or 'Prompts as a radix tree'}: {total} different tokens, of which {hits} were hits of a later prompt."
    )
    height = max(LEAST, 80 + int(ROW * (max(rows) - min(rows) + 1.3)))
    lay_out(fig, kind=f"radix {len(branches)}", alt=alt, height=height, title=title, above=3 * LEGEND_ROW + 6)
    fig.update_layout(legend_above(3), legend_orientation="v", hovermode="closest")
    header = ("from token", "to token", "hits up to", "shared", "text", "ends prompt")
    table = [(b.start, b.end, b.hit_end, b.is_shared, b.text, "/".join(map(str, b.ends))) for b in branches]
    return Drawing(fig, row_table(header, table), alt)


def pieces(one: Branch) -> list[tuple[str, int, int, float, str]]:
    """The parts of a branch by kind: (kind, start, end, row, text)."""
    cut = min(max(one.hit_end, one.start), one.end)
    rest = EQUAL if one.is_shared else OWN
    found = [(HIT, one.start, cut, one.row, one.text), (rest, cut, one.end, one.row, one.text)]
    return [piece for piece in found if piece[2] > piece[1]]


def add_bars(fig: go.Figure, parts: Sequence[tuple[str, int, int, float, str]], colour: str) -> None:
    if not parts:
        return
    bars: dict[str, Any] = {
        "x": [end - start for _, start, end, _, _ in parts],
        "base": [start for _, start, _, _, _ in parts],
        "y": [row for _, _, _, row, _ in parts],
        "customdata": np.array([[kind, str(start), str(end - 1), escape(text)] for kind, start, end, _, text in parts]),
    }
    fig.add_bar(
        **bars,
        orientation="h",
        width=0.42,
        marker={"color": colour, "line": {"width": 0}},
        hovertemplate="tokens %{customdata[1]}–%{customdata[2]}: %{customdata[0]}<br>%{customdata[3]}<extra></extra>",
        showlegend=False,
    )


def connector(one: Branch) -> dict[str, Any]:
    """From the branch before to this one."""
    return {"x": [one.start, one.start], "y": [one.before, one.row], "hoverinfo": "skip"}


def add_words(fig: go.Figure, branches: Sequence[Branch]) -> None:
    """The beginning of each branch above it, and which prompts end behind it."""
    begins: dict[str, Any] = {
        "x": [one.start for one in branches],
        "y": [one.row - 0.24 for one in branches],
        "text": [escape(one.text) for one in branches],
    }
    ended = [one for one in branches if one.ends]
    ends: dict[str, Any] = {
        "x": [one.end for one in ended],
        "y": [one.row for one in ended],
        "text": [f" prompt {', '.join(map(str, one.ends))}" for one in ended],
    }
    look: dict[str, Any] = {"mode": "text", "hoverinfo": "skip", "showlegend": False, "cliponaxis": False}
    fig.add_scatter(**begins, **look, textposition="top right", textfont={"size": 11})
    fig.add_scatter(**ends, **look, textposition="middle right", textfont={"size": 12})


def pool_grid(blocks: Sequence[tuple[int, int, int]], size: int, *, title: str = "") -> Drawing:
    """Every block (number, references, tokens) of a pool as a cell coloured by its references, from 0.

    A cell names its block; blocks that nobody holds are the cached ones.
    """
    rows = max(1, -(-max((number + 1 for number, _, _ in blocks), default=1) // ACROSS))
    counts, names = np.full((rows, ACROSS), np.nan), [[""] * ACROSS for _ in range(rows)]
    hover = [[""] * ACROSS for _ in range(rows)]
    for number, references, tokens in blocks:
        row, column = divmod(number, ACROSS)
        counts[row, column], names[row][column] = references, str(references)
        hover[row][column] = f"block {number}: {plural(references, 'reference')}, {tokens} of {plural(size, 'token')}"
    top = max(1.0, float(np.nanmax(counts))) if blocks else 1.0
    cells: dict[str, Any] = {"z": counts, "text": names, "hovertext": hover, "texttemplate": "%{text}"}
    heat = go.Heatmap(
        **cells,
        zmin=0,
        zmax=top,
        colorscale=EVEN_SHADES,
        showscale=False,
        xgap=2,
        ygap=2,
        hoverongaps=False,
        hovertemplate="%{hovertext}<extra></extra>",
    )
    fig = go.Figure(heat)
    fig.update_xaxes(bare(), title_text=f"block (number = {ACROSS} × row + column)", tickformat="d")
    fig.update_yaxes(bare(), title_text="row", autorange="reversed", dtick=1, tickformat="d")
    held = sum(1 for _, references, _ in blocks if references)
    most = max((references for _, references, _ in blocks), default=0)
    alt = (
        f"{title or 'Blocks'}: {plural(len(blocks), 'block')}, {held} held by open prompts, {len(blocks) - held} only "
        "kept; "
        f"most references {most}."
    )
    lay_out(fig, kind=f"pool {rows}", alt=alt, height=max(120, 70 + 26 * min(rows, 16)), title=title)
    fig.update_layout(plot_bgcolor=theme.CLEAR)
    return Drawing(fig, row_table(("block", "references", "tokens"), [tuple(one) for one in blocks]), alt)

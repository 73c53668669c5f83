"""A draft tree and its mask, the slots of a step, and how many drafted tokens were accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table, row_table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out, legend_above, swatch
from kvviz.text.counting import plural
from kvviz.text.signs import escape

ROW, LEAST, HEIGHT = 46, 180, 260  # pixels
LONGEST = 14  # characters of a token in the tree


@dataclass(frozen=True)
class Node:
    """A drafted token: its parent (−1: the root), whether it was accepted, and the weight that one row gives to it."""

    label: str
    parent: int
    depth: int
    accepted: bool
    weight: float


def draft_tree(root: str, nodes: Sequence[Node], *, added: str = "", reader: str = "", title: str = "") -> Drawing:
    """The tree from left to right: accepted nodes in A's colour, the others grey; under each the weight it gets.

    ``added`` is the token that the model wrote after the accepted path, ``reader`` the row whose weights are shown.
    """
    places = heights(nodes)
    fig = go.Figure()
    for accepted in (False, True):  # accepted branches are drawn over the others
        add_branches(fig, nodes, places, accepted)
    labels = [root, *(node.label for node in nodes)]
    weights = ["", *(share(node.weight) for node in nodes)]
    kept = [True, *(node.accepted for node in nodes)]
    shown: dict[str, Any] = {"x": [0, *(node.depth for node in nodes)], "y": places}
    fig.add_scatter(
        **shown,
        mode="markers+text",
        text=[f"{escape(cut(label))}<br>{weight}" for label, weight in zip(labels, weights, strict=True)],
        textposition="top center",
        marker={
            "size": 13,
            "color": [theme.ACCENT["a"] if one else theme.GONE for one in kept],
            "line": {"width": 1, "color": theme.RULE},
        },
        customdata=np.array([escape(label) for label in labels]),
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
        cliponaxis=False,
    )
    depth = max((node.depth for node in nodes), default=0)
    ticks: dict[str, Any] = {
        "dtick": 1,
        "range": [-0.4, depth + 0.6],
        "title_text": "tokens after the last one written",
    }
    fig.update_xaxes(bare() | ticks)
    rows = max(places) - min(places)
    fig.update_yaxes(bare(), title_text="branches", showticklabels=False, ticks="")
    fig.update_yaxes(range=[min(places) - 0.4, max(places) + 0.8])
    accepted_count = sum(node.accepted for node in nodes)
    alt = f"{title or 'Draft tree'}: {accepted_count} of {plural(len(nodes), 'drafted token')} accepted{after(added)}."
    notice = f"Under each token: the attention weight that {reader} gives to it." if reader and nodes else ""
    height = max(LEAST, 90 + int(ROW * (rows + 1)))
    lay_out(fig, kind=f"tree {len(nodes)}", alt=alt, height=height, title=title, notice=notice, above=LEGEND_ROW + 10)
    fig.add_traces([swatch("accepted", theme.ACCENT["a"]), swatch("dropped", theme.GONE)])
    fig.update_layout(legend_above(2))
    header = ("node", "token", "parent", "tokens after the root", "accepted", "weight")
    table = [
        (place, node.label, node.parent, node.depth, node.accepted, node.weight) for place, node in enumerate(nodes)
    ]
    return Drawing(fig, row_table(header, table), alt)


def share(weight: float) -> str:
    """A weight in few signs; 0 is exactly 0."""
    return "&lt;0.001" if 0 < weight < 0.001 else f"{weight:.2g}"


def after(added: str) -> str:
    return f", then the model adds {added!r}" if added else ""


def cut(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def heights(nodes: Sequence[Node]) -> list[float]:
    """Where the root and the nodes stand, from the top down: leaves one below another, parents among their children."""
    children: list[list[int]] = [[] for _ in range(len(nodes) + 1)]
    for place, node in enumerate(nodes):
        children[node.parent + 1].append(place + 1)
    found = [0.0] * (len(nodes) + 1)
    leaves = iter(range(len(nodes) + 1))

    def put(place: int) -> float:
        own = [put(child) for child in children[place]]
        found[place] = sum(own) / len(own) if own else -float(next(leaves))
        return found[place]

    put(0)
    return found


def add_branches(fig: go.Figure, nodes: Sequence[Node], places: Sequence[float], accepted: bool) -> None:
    xs: list[float | None] = []
    ys: list[float | None] = []
    for place, node in enumerate(nodes):
        if node.accepted == accepted:
            xs += [node.depth - 1, node.depth, None]
            ys += [places[node.parent + 1], places[place + 1], None]
    line = {"color": theme.ACCENT["a"] if accepted else theme.GONE, "width": 3 if accepted else 2}
    ends: dict[str, Any] = {"x": xs, "y": ys}
    fig.add_scatter(**ends, mode="lines", line=line, hoverinfo="skip", showlegend=False)


def tree_mask(mask: NDArray[np.bool_], labels: Sequence[str], cached: int, *, title: str = "") -> Drawing:
    """What each row of the block sees: (R, c + R) bool, the last ``cached`` = c keys of the cache and its own block.

    ``labels`` (c + R) are distinct.
    """
    rows, keys = mask.shape
    own = [escape(label) for label in labels]
    scale = [(0.0, theme.GROUND), (0.5, theme.GROUND), (0.5, theme.ACCENT["a"]), (1.0, theme.ACCENT["a"])]
    cells: dict[str, Any] = {"z": mask.astype(np.uint8), "x": own, "y": own[cached:], "xgap": 1, "ygap": 1}
    heat = go.Heatmap(
        **cells,
        zmin=0,
        zmax=1,
        colorscale=scale,
        showscale=False,
        hovertemplate="%{y} sees %{x}: %{z}<extra></extra>",
    )
    fig = go.Figure([heat, swatch("seen", theme.ACCENT["a"]), swatch("hidden", theme.GROUND)])
    fig.add_vline(x=cached - 0.5, line={"color": theme.RULE, "width": 2, "dash": "dot"})
    look = {"type": "category", "tickmode": "linear", "dtick": 1}
    fig.update_xaxes(bare() | look, title_text=f"key: the last {cached} of the cache, then the block", tickangle=-90)
    fig.update_yaxes(bare() | look, title_text="row of the block", autorange="reversed")
    hidden = int((~mask).sum())
    alt = f"{title or 'Tree mask'}: {rows} rows over {keys} keys, {hidden} pairs hidden."
    height = max(HEIGHT, 110 + 20 * rows)
    lay_out(fig, kind=f"tree mask {rows}×{keys}", alt=alt, height=height, title=title, above=LEGEND_ROW + 10)
    fig.update_layout(legend_above(2))
    return Drawing(fig, Table(("row", *labels), (list(labels[cached:]), mask)), alt)


def step_slots(labels: Sequence[str], cached: int, kept: Sequence[int], *, title: str = "") -> Drawing:
    """The slots after the tree was read, and after the step: cached ones, kept rows, dropped ones (all by index).

    ``labels`` name the slots after the tree was read, distinct: the last ``cached`` of the cache, then the block.
    """
    stays = [place < cached or place - cached in set(kept) for place in range(len(labels))]
    codes = np.array([1 if place < cached else 2 if stay else 3 for place, stay in enumerate(stays)])
    left = np.full(len(labels), np.nan)
    left[: sum(stays)] = codes[np.array(stays)]
    colours = (theme.LINES["f"][0], theme.ACCENT["a"], theme.GONE)
    scale = [(edge, colour) for place, colour in enumerate(colours) for edge in (place / 3, (place + 1) / 3)]
    rows = ["after the step", "tree read"]
    names = [[label for label, stay in zip(labels, stays, strict=True) if stay], list(labels)]
    texts = [[escape(cut(name)) for name in row] + [""] * (len(labels) - len(row)) for row in names]
    cells: dict[str, Any] = {"z": np.array([left, codes], dtype=np.float32), "x": list(range(len(labels))), "y": rows}
    heat = go.Heatmap(
        **cells | {"text": texts},
        zmin=0.5,
        zmax=3.5,
        colorscale=scale,
        showscale=False,
        xgap=1,
        ygap=4,
        hoverongaps=False,
        hovertemplate="slot %{x}: %{text}<extra></extra>",
    )
    shown = zip(("cached before", "kept", "dropped"), colours, strict=True)
    fig = go.Figure([heat, *(swatch(name, colour) for name, colour in shown)])
    fig.update_xaxes(bare(), title_text=f"slot (the last {cached} of the cache, then the block)", tickformat="d")
    fig.update_yaxes(bare(), title_text="when")
    dropped = stays.count(False)
    alt = f"{title or 'Slots'}: {len(kept)} of {len(labels) - cached} rows kept, {plural(dropped, 'slot')} dropped."
    lay_out(fig, kind=f"slots {len(labels)}", alt=alt, height=LEAST, title=title, above=LEGEND_ROW + 10)
    fig.update_layout(legend_above(3))
    table = [
        (name, place, code, stay) for place, (name, code, stay) in enumerate(zip(labels, codes, stays, strict=True))
    ]
    return Drawing(fig, row_table(("slot", "index", "1 cached, 2 kept, 3 dropped", "stays"), table), alt)


def accepted_bars(drafted: Sequence[int], accepted: Sequence[int], chosen: int, *, title: str = "") -> Drawing:
    """Drafted and accepted tokens of every step; ``chosen`` is drawn in B's colour."""
    steps = list(range(len(accepted)))
    fig = go.Figure()
    fig.add_bar(
        x=steps, y=list(drafted), name="drafted", marker_color=theme.GONE, hovertemplate="%{y} drafted<extra></extra>"
    )
    colours = [theme.ACCENT["b" if step == chosen else "a"] for step in steps]
    fig.add_bar(
        x=steps, y=list(accepted), name="accepted", marker_color=colours, hovertemplate="%{y} accepted<extra></extra>"
    )
    fig.update_xaxes(bare(), title_text="step", tickformat="d")
    fig.update_yaxes(bare(), title_text="tokens", showgrid=True, gridcolor=theme.GRID, rangemode="tozero")
    mean = float(np.mean(accepted)) if len(accepted) else 0.0
    alt = (
        f"{title or 'Accepted tokens'}: {mean:.3g} a step on average, {sum(accepted)} in {plural(len(steps), 'step')}."
    )
    lay_out(fig, kind=f"accepted {len(steps)}", alt=alt, height=HEIGHT, title=title, above=LEGEND_ROW + 10)
    fig.update_layout(legend_above(2), barmode="overlay")
    return Drawing(fig, Table(("step", "drafted", "accepted"), (steps, list(drafted), list(accepted))), alt)

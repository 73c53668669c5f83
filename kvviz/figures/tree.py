"""A draft tree and its mask, the slots of a step, and how many drafted tokens were accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, row_table
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

"""What a draft tree does to the cache: its mask, the slots that stay, and how many drafted tokens were accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table, row_table
from kvviz.figures.frame import LEGEND_ROW, bare, lay_out, legend_above, swatch
from kvviz.figures.tree import LEAST, cut
from kvviz.text.counting import plural
from kvviz.text.signs import escape

HEIGHT = 260  # pixels


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
    """Drafted and accepted tokens of every step; those of the step ``chosen`` in B's colour, under a name of their "
    "own."""
    steps = list(range(len(accepted)))
    fig = go.Figure()
    fig.add_bar(
        x=steps, y=list(drafted), name="drafted", marker_color=theme.GONE, hovertemplate="%{y} drafted<extra></extra>"
    )
    for name, side, shown in (
        ("accepted", "a", [step for step in steps if step != chosen]),
        ("accepted in the step shown", "b", [step for step in steps if step == chosen]),
    ):
        bars: dict[str, Any] = {"x": shown, "y": [accepted[step] for step in shown], "name": name}
        colour = theme.ACCENT["a" if side == "a" else "b"]
        fig.add_bar(**bars, marker_color=colour, hovertemplate="%{y} accepted<extra></extra>")
    fig.update_xaxes(bare(), title_text="step", tickformat="d")
    fig.update_yaxes(bare(), title_text="tokens", showgrid=True, gridcolor=theme.GRID, rangemode="tozero")
    mean = float(np.mean(accepted)) if len(accepted) else 0.0
    alt = (
        f"{title or 'Accepted tokens'}: {mean:.3g} a step on average, {sum(accepted)} in {plural(len(steps), 'step')}."
    )
    lay_out(fig, kind=f"accepted {len(steps)}", alt=alt, height=HEIGHT, title=title, above=LEGEND_ROW + 10)
    fig.update_layout(legend_above(3), barmode="overlay")
    return Drawing(fig, Table(("step", "drafted", "accepted"), (steps, list(drafted), list(accepted))), alt)

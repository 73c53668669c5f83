"""Down to which budget each policy still does its work: a row a policy, a column a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, row_table
from kvviz.figures.frame import bare, lay_out
from kvviz.text.signs import escape

ROW = 40  # pixels
NEVER = "none"
Limits = Mapping[tuple[str, str], int | None]


def limit_table(
    policies: Sequence[str], tasks: Sequence[str], limits: Limits, budgets: Sequence[int], *, title: str = ""
) -> Drawing:
    """The smallest budget at which each policy still works on each task, by (policy, task); None = at none of them.

    ``budgets`` ascending are those that were tried; the brighter a cell, the smaller the budget that is enough.
    """
    rows = [[limits[policy, task] for task in tasks] for policy in policies]
    shades = [[0 if found is None else len(budgets) - budgets.index(found) for found in row] for row in rows]
    words = [[NEVER if found is None else f"{found:,}" for found in row] for row in rows]
    cells: dict[str, Any] = {"x": [escape(task) for task in tasks], "y": [escape(policy) for policy in policies]}
    cells["z"] = np.array(shades, dtype=np.float32).reshape(len(policies), len(tasks))
    fig = go.Figure(
        go.Heatmap(
            **cells,
            zmin=0,
            zmax=len(budgets),
            colorscale=list(theme.SEQUENTIAL),
            text=np.array(words).reshape(len(policies), len(tasks)),
            texttemplate="%{text}",
            showscale=False,
            xgap=2,
            ygap=2,
            hovertemplate="%{y}, %{x}<br>works down to a budget of: %{text}<extra></extra>",
        )
    )
    fig.update_xaxes(bare(), title_text="smallest budget (entries) that still works, by task", type="category")
    fig.update_yaxes(bare(), autorange="reversed", title_text="policy")
    told = [f"{policy}: {each(tasks, row)}" for policy, row in zip(policies, words, strict=True)]
    alt = f"{title or 'Smallest budget that still works'}, of {', '.join(map(str, budgets))}: {'; '.join(told)}."
    lay_out(fig, kind=f"limits {len(policies)}×{len(tasks)}", alt=alt, height=110 + ROW * len(policies), title=title)
    table = row_table(("policy", *tasks), [(policy, *row) for policy, row in zip(policies, words, strict=True)])
    return Drawing(fig, table, alt)


def each(tasks: Sequence[str], words: Sequence[str]) -> str:
    return ", ".join(f"{task} {word}" for task, word in zip(tasks, words, strict=True))

"""What one forward of a whole tree costs beside as many single steps, measured in turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.drafts.tree import Tree
from kvviz.choices.setup import Setup
from kvviz.run.engine import Pass
from kvviz.run.progress import Cancelled
from kvviz.run.reading import Reading
from kvviz.run.replay import clock

REPEATS = 5


@dataclass(frozen=True)
class TreeCost:
    """Medians in seconds: of one forward of ``rows`` rows, and of one single step, with the same cache before."""

    rows: int
    tree_seconds: float
    step_seconds: float

    @property
    def ratio(self) -> float:
        """One forward by as many single steps."""
        return self.tree_seconds / (self.rows * self.step_seconds)

    @property
    def steps_paid(self) -> float:
        """How many single steps the forward takes as long as: so many tokens it must write to pay."""
        return self.tree_seconds / self.step_seconds


def tree_cost(
    model: PreTrainedModel, ids: Tensor, tree: Tree, *, is_cancelled: Callable[[], bool] | None = None
) -> TreeCost:
    """Time both after a text (T,), T at least 2: the last token is the root of the tree."""
    reading, run = Reading(model), Pass(model, Setup(), prompt_tokens=len(ids))
    reading.read(ids[:-1])
    run.feed(ids[:-1], last_only=True)
    trees, steps, root = [], [], int(ids[-1])
    for _ in range(REPEATS + 1):
        if is_cancelled is not None and is_cancelled():
            raise Cancelled
        trees.append(timed(model, lambda: read_tree(reading, tree, root)))
        steps.append(timed(model, lambda: run.feed([root])))
    return TreeCost(len(tree) + 1, median(trees[1:]), median(steps[1:]))


def read_tree(reading: Reading, tree: Tree, root: int) -> None:
    """Verify the tree and forget it again."""
    cached, base = reading.held, reading.fed
    places = torch.tensor([0, *tree.depths], device=reading.device) + base
    reading.read([root, *tree.tokens], positions=places, visible=tree.mask(cached).to(reading.device), order=places)
    reading.keep(torch.arange(cached, device=reading.device))
    reading.fed = base


def timed(model: PreTrainedModel, work: Callable[[], object]) -> float:
    start = clock(model)
    work()
    return clock(model) - start

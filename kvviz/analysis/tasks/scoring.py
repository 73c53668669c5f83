"""Whether a setup still finds the answer, and if not, whether the needle was forgotten or only not found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedModel

from kvviz.analysis.tasks.base import Encode, Prompt, Task
from kvviz.choices.setup import Setup
from kvviz.measures.interval import wilson
from kvviz.run.replay import replay
from kvviz.run.trace import Trace

Key = tuple[tuple[int, ...], int]  # a prompt's tokens and where it ends
VOID_BELOW = 0.95  # a task that the full cache itself fails on says nothing about a policy


@dataclass(frozen=True)
class Cell:
    """One prompt's outcome. ``held`` is the share of (layer, KV head) pairs that hold all of the needle's tokens when
    the answer begins: a miss with a high share was not found, one with a low share was forgotten."""

    depth: int
    seed: int
    found: bool | None  # every answer token is the likeliest (``Task.enough`` of them); None where nothing is asked
    answer_loss: float  # nats a token, mean over the answer
    held: float | None


@dataclass(frozen=True)
class Grid:
    """All cells of a task under one setup."""

    task: Task
    tokens: int
    cells: tuple[Cell, ...]

    @property
    def found(self) -> int | None:
        return sum(bool(cell.found) for cell in self.cells) if self.task.is_scored else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the share found."""
        return wilson(self.found, len(self.cells)) if self.found is not None else None

    @property
    def is_void(self) -> bool:
        """Whether, as a grid of the full cache, it fails too often for the task to mean anything."""
        return self.found is not None and self.found < VOID_BELOW * len(self.cells)


def check_task(task: Task, tokens: int, depths: Sequence[int], seeds: int) -> None:
    """Refuse what makes no prompt; ValueError in one sentence."""
    if tokens < task.least_tokens:
        raise ValueError(
            f"{tokens} tokens are too few for {task.name}: its question and answer need at least {task.least_tokens}."
        )
    if wrong := [depth for depth in depths if not 0 <= depth <= 100]:
        raise ValueError(f"The depth {wrong[0]} must be from 0 (the beginning) to 100 (the end), in percent.")
    if twice := [depth for depth in depths if list(depths).count(depth) > 1]:
        # the same prompt twice is one try: counted twice it would make the interval too narrow
        raise ValueError(f"The depth {twice[0]} is given twice; give each depth once, and --seeds for more prompts.")
    if seeds < 1 or not depths:
        raise ValueError("There is nothing to ask: give at least one depth and one seed.")


def grid(
    model: PreTrainedModel,
    encode: Encode,
    filler: Sequence[int],
    task: Task,
    setup: Setup,
    *,
    tokens: int,
    depths: Sequence[int],
    seeds: int,
    progress: Callable[[float], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Grid:
    """Every depth with every seed from 0 on."""
    options = {"tokens": tokens, "depths": depths, "seeds": seeds, "progress": progress, "is_cancelled": is_cancelled}
    asked = each_cell(model, encode, filler, task, setup, **options)  # type: ignore[arg-type]
    return Grid(task, tokens, tuple(cell for cell, _ in asked))


def each_cell(
    model: PreTrainedModel,
    encode: Encode,
    filler: Sequence[int],
    task: Task,
    setup: Setup,
    *,
    tokens: int,
    depths: Sequence[int],
    seeds: int,
    progress: Callable[[float], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Iterator[tuple[Cell, Trace]]:
    """The cells of a grid one after another, so that whoever knows enough may stop; with the replay of each.

    Depths that share a text share its replay.
    """
    check_task(task, tokens, depths, seeds)
    cells, traces = [(depth, seed) for seed in range(seeds) for depth in depths], dict[Key, Trace]()
    for place, (depth, seed) in enumerate(cells):

        def tell(share: float, place: int = place) -> None:
            if progress is not None:
                progress((place + share) / len(cells))

        prompt = task.prompt(encode, filler, tokens, depth, seed)
        key = prompt.ids, prompt.prompt_tokens
        if key not in traces:
            run = {"prompt_tokens": prompt.prompt_tokens, "progress": tell, "is_cancelled": is_cancelled}
            traces = {key: replay(model, prompt.ids, setup, **run)}  # type: ignore[arg-type]
        yield scored(traces[key], prompt, task, depth, seed), traces[key]


def finds_enough(cells: Iterable[Cell], count: int, share: float) -> bool:
    """Whether at least that share of ``count`` cells is found; asks no further than it takes to know."""
    needed, found, missed = math.ceil(share * count), 0, 0
    for cell in cells:
        found, missed = found + bool(cell.found), missed + (not cell.found)
        if found >= needed or missed > count - needed:
            break
    return found >= needed


def scored(trace: Trace, prompt: Prompt, task: Task, depth: int, seed: int) -> Cell:
    """One cell, from the replay of its prompt."""
    asked = np.array(prompt.answers) - 1  # a loss and a hit belong to the token after the query
    losses = trace.nll[asked]
    assert trace.is_likeliest is not None, "a replay says which tokens were the likeliest"
    return Cell(
        depth=depth,
        seed=seed,
        found=bool(trace.is_likeliest[asked].mean() >= task.enough) if task.is_scored else None,
        answer_loss=float(losses.mean()),
        held=held_share(trace, prompt) if prompt.needle else None,
    )


def held_share(trace: Trace, prompt: Prompt) -> float:
    """Share of (layer, KV head) pairs that hold all of the needle when the answer begins."""
    last = prompt.answers[0] - 1  # the query that predicts the answer's first token
    return float((trace.evicted_at[:, :, list(prompt.needle)] > last).all(-1).mean())

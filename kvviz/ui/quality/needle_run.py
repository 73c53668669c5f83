"""The needles under one setup: what is kept of them, and how they are looked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvviz.choices.setup import Setup
from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.ui.quality.common import MANY_TOKENS, first_tokens, model_for
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.words import setup_words

DEPTHS = (0, 25, 50, 75, 100)
VOID_BELOW = 0.95  # as the tasks have it; asked of the full cache


@dataclass(frozen=True, eq=False)
class Needles:
    """What one setup found: D depths, S seeds."""

    found: NDArray[np.bool_]  # (D, S); False throughout where a task asks nothing
    held: NDArray[np.float64]  # (D, S) share of layers and KV heads that held all of the needle; NaN without one
    loss: NDArray[np.float64]  # (D, S) nats a token of the answer
    pairs: int  # layers × KV heads
    cache_bytes: int  # at the end of the last prompt
    seconds: float  # of all replays
    is_scored: bool

    @property
    def is_void(self) -> bool:
        """Whether, of the full cache, the task says nothing about a policy."""
        return self.is_scored and float(self.found.mean()) < VOID_BELOW


def needles_job(
    model: str, setup: Setup, task_name: str, tokens: int, seeds: int
) -> tuple[Key, Callable[[Job], Result]]:
    """The needles under one setup: its key and how to look for them."""

    def compute(job: Job) -> Result:
        from kvviz.analysis.tasks import TASKS, VARIANTS
        from kvviz.analysis.tasks.scoring import each_cell
        from kvviz.models.tokens import encode

        loaded, task = model_for(model, [setup], job), {**TASKS, **VARIANTS}[task_name]
        doing = f"{task.title} in {tokens:,} tokens under {setup_words(setup)}"
        cells = each_cell(
            loaded.model,
            lambda text: encode(loaded.tokenizer, text, MANY_TOKENS),
            first_tokens(model, PRESETS[LONG_TEXT].text(), MANY_TOKENS),
            task,
            setup,
            tokens=tokens,
            depths=DEPTHS,
            seeds=seeds,
            progress=lambda share: job.report(doing, share),
            is_cancelled=job.is_unwanted,
        )
        return Result(gathered([*cells], task.is_scored, seeds))

    return ("needles", model, task_name, tokens, seeds, str(setup)), compute


def gathered(asked: Sequence[tuple[object, object]], is_scored: bool, seeds: int) -> Needles:
    """Cells (in the order of seeds, then depths) with their traces as arrays."""
    cells, traces = zip(*asked, strict=True)
    shape = (seeds, len(DEPTHS))
    held = [np.nan if cell.held is None else cell.held for cell in cells]
    return Needles(
        found=np.array([bool(cell.found) for cell in cells]).reshape(shape).T,
        held=np.array(held, dtype=np.float64).reshape(shape).T,
        loss=np.array([cell.answer_loss for cell in cells]).reshape(shape).T,
        pairs=traces[-1].layers * traces[-1].kv_heads,
        cache_bytes=traces[-1].cache_bytes,
        seconds=sum(trace.seconds for trace in {id(trace): trace for trace in traces}.values()),
        is_scored=is_scored,
    )

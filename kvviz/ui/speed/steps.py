"""The steps of A and B after prompts of several lengths, timed; with the bytes they read and the machine's limit."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass

from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.figures.speed import Steps
from kvviz.ui.shell import runs
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import side_words

SHARES = (16, 8, 4, 2, 1)  # lengths of the prompts, as parts of the longest
NEAR, FAR = 4096, 131_072  # the contexts that the source compares


@dataclass(frozen=True)
class Far:
    """What one step reads and computes at a context that is counted, not run."""

    tokens: int
    cache_bytes: int
    projection_work: int  # multiply-adds with weights
    attention_work: int  # multiply-adds with keys and values


@dataclass(frozen=True)
class Speeds:
    """All that the page shows of A and B."""

    steps: list[Steps]
    weight_bytes: int
    bandwidth: float  # bytes per second
    far: list[list[Far]]  # of A and of B, at NEAR and FAR
    place: str  # model, number format, device and threads
    bytes: int = 10_000


def lengths_of(longest: int) -> list[int]:
    """Where steps are timed."""
    return sorted({max(1, longest // share) for share in SHARES})


def machine() -> tuple[str | int | None, ...]:
    """What a time belongs to besides what was run: the machine and the cores it may use."""
    return platform.node(), os.cpu_count(), os.environ.get("OMP_NUM_THREADS")


def steps_job(view: View, longest: int) -> tuple[Key, Callable[[Job], Speeds]]:
    """A and B at every length. A time is this machine's own, so its name is in the key."""
    name, setups = view.experiment.model, [view.experiment.setup, view.versus]

    def compute(job: Job) -> Speeds:
        loaded = runs.loaded_model(name, job.tell)
        from kvviz.analysis.decoding import counted_step, read_bandwidth, step_costs, weight_bytes
        from kvviz.models.tokens import encode

        ids = encode(loaded.tokenizer, PRESETS[LONG_TEXT].text(), longest)
        found = []
        for place, setup in enumerate(setups):
            if reason := runs.refusal(loaded, setup):
                raise ValueError(reason)
            side = "ab"[place]

            def tell(share: float, place: int = place, side: str = side) -> None:
                job.report(f"timing the steps of {side.upper()}", (place + share) / len(setups))

            tell(0.0)
            costs = step_costs(
                loaded.model, ids, setup, lengths_of(longest), progress=tell, is_cancelled=job.is_unwanted
            )
            found.append(
                Steps(
                    side_words(side.upper(), setup),
                    side,  # type: ignore[arg-type]
                    tuple(cost.tokens for cost in costs),
                    tuple(cost.seconds for cost in costs),
                    tuple(cost.low for cost in costs),
                    tuple(cost.high for cost in costs),
                    tuple(cost.cache_bytes for cost in costs),
                )
            )
        weights = weight_bytes(loaded.model)
        far = [[Far(tokens, *counted_step(loaded.model, setup, tokens)) for tokens in (NEAR, FAR)] for setup in setups]
        return Speeds(found, weights, read_bandwidth(loaded.device), far, place_words(name))

    return ("speed", name, longest, *machine(), *map(str, setups)), compute


def place_words(name: str) -> str:
    """The model, its number format, where it runs and with how many threads."""
    import torch

    return f"{name}, {runs.place_of(name)}, {torch.get_num_threads()} threads"

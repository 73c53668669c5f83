"""What the Receptive field page has computed beyond the runs of A and B: gradients, and the exact sets beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kvviz.ui.shell import runs
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.runs import Key, Run
from kvviz.ui.shell.words import plural

if TYPE_CHECKING:
    from kvviz.analysis.influence import Influence

ALL_DEPTHS = 512  # positions up to which the gradients of every depth are taken
# of a longer text, evenly spread: the cost grows with the length and with each depth
FEW_DEPTHS = ((1024, 6), (2**31, 4))


@dataclass(frozen=True, eq=False)
class Seen:
    """Influence and exact reach of one token under one setup."""

    found: Influence
    cone: NDArray[np.bool_]  # (D, L + 1, T): which positions of each level can reach each depth
    windows: tuple[int | None, ...]  # of the model's layers themselves; None = full attention
    full_layers: tuple[int, ...]  # layers in which the token itself sees everything before it

    @property
    def reach(self) -> NDArray[np.bool_]:
        """(D, T): what the token can depend on after each depth."""
        return self.cone[:, 0]

    @property
    def bytes(self) -> int:
        return self.found.bytes + self.cone.nbytes


@dataclass(frozen=True, eq=False)
class Pair:
    """The same for A and for B."""

    a: Seen
    b: Seen

    @property
    def bytes(self) -> int:
        return self.a.bytes + self.b.bytes


def pair_job(model: str, a: Run, b: Run, query: int, depth: int) -> tuple[Key, Callable[[Job], Pair]]:
    """A and B after one number of layers: what the headline and most figures need, in a second or two."""

    def compute(job: Job) -> Pair:
        return Pair(*(seen(model, run, query, [depth], job, place / 2, 0.5) for place, run in enumerate((a, b))))

    return ("reach", *described(model, a, query), *described(model, b, query), depth), compute


def depths_job(model: str, run: Run, query: int, depth: int) -> tuple[Key, Callable[[Job], Seen]]:
    """Every number of layers, or a few of a long text, ``depth`` among them."""
    depths = depths_for(run.trace.layers, query, depth)
    return ("reach_all", *described(model, run, query), tuple(depths)), lambda job: seen(model, run, query, depths, job)


def depths_for(layers: int, query: int, depth: int) -> list[int]:
    """The numbers of layers that are affordable for so many positions."""
    if query < ALL_DEPTHS:
        return list(range(1, layers + 1))
    count = next(count for positions, count in FEW_DEPTHS if query < positions)
    few = np.linspace(1, layers, min(count, layers)).round().astype(int)
    return sorted({*few.tolist(), depth})


def described(model: str, run: Run, query: int) -> tuple[str | int | bytes, ...]:
    """What the gradients of a run depend on."""
    trace = run.trace
    return (model, str(trace.setup.words()), trace.prompt_tokens, trace.token_ids.tobytes(), query)


def seen(
    model: str, run: Run, query: int, depths: Sequence[int], job: Job, start: float = 0.0, part: float = 1.0
) -> Seen:
    # these import torch and transformers, which takes seconds: the controls are there before
    from kvviz.analysis.influence import influence
    from kvviz.analysis.masks import TraceMasks
    from kvviz.measures.reach import cones

    loaded = runs.loaded_model(model, job.tell)
    doing = f"gradients of {plural(query + 1, 'position')} through {plural(max(depths), 'layer')}"
    found = influence(
        loaded.model,
        run.trace,
        query,
        depths,
        progress=lambda share: job.report(doing, start + part * share),
        is_cancelled=job.is_unwanted,
    )
    masks = TraceMasks(loaded.model, run.trace, query)
    full = tuple(layer for layer in range(max(depths)) if bool(masks.union(layer)[query].all()))
    return Seen(found, cones(masks.union, found.depths, query), tuple(masks.windows[: max(depths)]), full)

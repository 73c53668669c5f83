"""Removal against zeroing the value: an entry that leaves renormalises the rest, one that says nothing does not.

With weight p on the entry and value v, the output o of one head becomes o + p/(1 − p)·(o − v) when the entry is
removed, and o − p·v when its value is set to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.exactness.masks import Losses, losses_of, read_prefix
from kvviz.run import attention
from kvviz.run.reading import Attended, Reading

WAYS = ("full", "removed", "zeroed")
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OneStep:
    """One query in every layer and head of the full run, and what removing or zeroing one entry would make of it."""

    place: int  # position of the entry
    step: int  # position of the query
    weights: dict[str, Floats]  # by way, (L, A, K); 0 where the entry is removed
    outputs: dict[str, Floats]  # by way, (L, A, D)
    formula: Floats  # (L, A, D): p/(1 − p)·(o − v)

    @property
    def share(self) -> Floats:
        """The weight p on the entry, (L, A)."""
        found: Floats = self.weights["full"][:, :, self.place]
        return found

    def change(self, way: str) -> Floats:
        """‖o′ − o‖ / ‖o‖ of each layer and head, (L, A)."""
        full = self.outputs["full"]
        found: Floats = np.linalg.norm(self.outputs[way] - full, axis=-1) / np.linalg.norm(full, axis=-1)
        return found

    @property
    def formula_gap(self) -> float:
        """The largest difference between the closed form and the measured change, as a share of the largest change."""
        measured = self.outputs["removed"] - self.outputs["full"]
        return float(np.abs(self.formula - measured).max() / max(float(np.abs(measured).max()), 1e-300))

    @property
    def nbytes(self) -> int:
        parts = [*self.weights.values(), *self.outputs.values(), self.formula]
        return sum(part.nbytes for part in parts)


def removal_losses(
    model: PreTrainedModel, ids: Tensor, prefix: int, place: int, base: Reading | None = None
) -> dict[str, Losses]:
    """By way, what the rest of the text costs after the entry at ``place`` was removed or zeroed, (q − 1,) nats.

    It is changed in all layers and heads, when the prefix has been read. Raises ValueError where the prefix has no
    such entry.
    """
    check_place(place, prefix)
    base = base or read_prefix(model, ids, prefix)
    rest, found = ids[prefix:], {}
    for way in WAYS:
        reading = base.copy()
        if way == "removed":
            reading.remove(place)
        elif way == "zeroed":
            reading.zero(place)
        found[way] = losses_of(continued_right(reading, rest, prefix), rest)
    return found


def continued_right(reading: Reading, rest: Tensor, prefix: int) -> Tensor:
    """The rest at its own positions, which are not the number of entries held where one was removed."""
    return reading.read(rest, positions=torch.arange(prefix, prefix + len(rest), device=rest.device))


def check_place(place: int, prefix: int) -> None:
    if not 0 <= place < prefix:
        raise ValueError(f"There is no entry {place} to remove: the prefix has the positions 0–{prefix - 1}.")


def one_step(
    model: PreTrainedModel, ids: Tensor, prefix: int, place: int, step: int, base: Reading | None = None
) -> OneStep:
    """The query at position ``step`` after the prefix, in every layer and head of the full run.

    Each layer is asked about its own inputs, which are those of the full run: what a changed layer hands on is not
    followed. Computed in float64.
    """
    check_place(place, prefix)
    check_step(step, prefix, len(ids))
    reading = base.copy() if base else read_prefix(model, ids, prefix)
    if step > prefix:
        reading.read(ids[prefix:step])
    found: list[tuple[dict[str, Tensor], dict[str, Tensor], Tensor]] = []
    reading.watcher = lambda layer, given: found.append(three_ways(given, place))
    reading.read(ids[step : step + 1])
    weights, outputs, formulas = zip(*found, strict=True)
    return OneStep(
        place,
        step,
        {way: stacked([one[way] for one in weights]) for way in WAYS},
        {way: stacked([one[way] for one in outputs]) for way in WAYS},
        stacked(list(formulas)),
    )


def check_step(step: int, prefix: int, tokens: int) -> None:
    if not prefix <= step < tokens:
        raise ValueError(f"There is no step {step} after the prefix; choose a number from {prefix} to {tokens - 1}.")


def three_ways(given: Attended, place: int) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
    """Weights (A, K) and outputs (A, D) of one layer's single query by way, and the closed form (A, D)."""
    query, key, value = (part.cpu().double() for part in (given.query, given.key, given.value))
    visible = given.visible.cpu()[None]
    raw = attention.scores(query, key, given.rule)
    without = visible.clone()
    without[..., place] = False
    zeroed = value.clone()
    zeroed[:, :, place] = 0
    full = attention.weights_of(raw, visible, given.rule)
    removed = attention.weights_of(raw, without, given.rule)
    pairs = {"full": (full, value), "removed": (removed, value), "zeroed": (full, zeroed)}
    outputs = {way: attention.combine(*pair)[0, 0] for way, pair in pairs.items()}
    weights = {way: weight[:, :, 0].flatten(0, 1) for way, (weight, _) in pairs.items()}
    share = weights["full"][:, place, None]
    group = len(share) // value.shape[1]
    own = value[0, :, place].repeat_interleave(group, 0)
    return weights, outputs, share / (1 - share) * (outputs["full"] - own)


def stacked(parts: list[Tensor]) -> Floats:
    found: Floats = torch.stack(parts).numpy()
    return found

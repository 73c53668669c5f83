"""Which entries of a cache change when the text does: an early token edited, or a token appended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.run.reading import Reading

Floats = NDArray[np.float64]
SAME = 1e-5  # a relative change below it is another order of the same sums; where shapes are equal it is exactly 0


@dataclass(frozen=True, eq=False)
class Changes:
    """How far keys and values moved at every layer and position, ‖x′ − x‖ / ‖x‖ over all heads, (L, T) each."""

    keys: Floats
    values: Floats

    @property
    def either(self) -> Floats:
        """The larger of both."""
        return np.maximum(self.keys, self.values)

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Which entries are others, (L, T)."""
        found: NDArray[np.bool_] = self.either > SAME
        return found

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.values.nbytes


def edited(ids: Sequence[int], position: int, tokens: Sequence[int]) -> list[int]:
    """The text with the token at ``position`` replaced by others, or deleted where there are none.

    Raises ValueError for a position outside the text and for an edit that leaves none.
    """
    if not 0 <= position < len(ids):
        raise ValueError(f"There is no token {position} to edit: the text has the positions 0–{len(ids) - 1}.")
    found = [*ids[:position], *tokens, *ids[position + 1 :]]
    if not found:
        raise ValueError("Deleting the only token would empty the text; type another token instead.")
    return [int(token) for token in found]


def changes_by_edit(model: PreTrainedModel, before: Sequence[int], after: Sequence[int]) -> Changes:
    """The entries of two texts, position by position, as far as the shorter one reaches."""
    return between(entries_of(model, before), entries_of(model, after))


def changes_by_appending(model: PreTrainedModel, ids: Sequence[int], token: int) -> dict[str, Changes]:
    """What the old entries become when a token is appended: under the causal mask, and where all see all.

    No weights are changed for the latter: the mask alone decides whether anything could have been kept.
    """
    found = {}
    for name, is_causal in (("causal", True), ("bidirectional", False)):
        old, new = (entries_of(model, text, is_causal=is_causal) for text in (ids, [*ids, token]))
        found[name] = between(old, new)
    return found


def entries_of(model: PreTrainedModel, ids: Sequence[int], *, is_causal: bool = True) -> list[tuple[Tensor, Tensor]]:
    """Keys and values of every layer after one pass, (1, H, T, D)."""
    reading, given = Reading(model), torch.as_tensor(list(ids), device=model.device)
    every = torch.ones(len(given), len(given), dtype=torch.bool, device=model.device)
    reading.read(given, visible=None if is_causal else every)
    return reading.entries()


def between(old: list[tuple[Tensor, Tensor]], new: list[tuple[Tensor, Tensor]]) -> Changes:
    pairs = [[moved(*two) for two in zip(before, after, strict=True)] for before, after in zip(old, new, strict=True)]
    keys, values = (torch.stack([layer[side] for layer in pairs]).cpu().numpy() for side in (0, 1))
    return Changes(keys, values)


def moved(before: Tensor, after: Tensor) -> Tensor:
    """How far each position's entry moved as a share of its length, (T,) float64."""
    shared = min(before.shape[2], after.shape[2])
    one, two = (side[0, :, :shared].transpose(0, 1).flatten(1).double() for side in (before, after))
    return (two - one).norm(dim=-1) / one.norm(dim=-1).clamp(min=1e-30)

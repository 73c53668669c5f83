"""A block of q rows over S cached entries: the mask that lets row i see key S + i, and the one that forgets the S."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.exactness.compared import Compared, compare
from kvviz.run.reading import Reading
from kvviz.run.replay import token_losses

Losses = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Masked:
    """A block read under one mask: how far its answers are from the uncached ones, and its losses (q − 1,) in nats."""

    compared: Compared
    losses: Losses

    @property
    def nbytes(self) -> int:
        return self.compared.nbytes + self.losses.nbytes


def right_mask(rows: int, cached: int) -> Tensor:
    """(q, S + q) bool: row i sees keys 0 … S + i."""
    return torch.ones(rows, cached + rows, dtype=torch.bool).tril(cached)


def corner_mask(rows: int, cached: int) -> Tensor:
    """(q, S + q) bool, the mistake: the triangle begins in the corner, so row i sees keys 0 … i."""
    return torch.ones(rows, cached + rows, dtype=torch.bool).tril()


def masked(
    model: PreTrainedModel, ids: Tensor, prefix: int, uncached: Tensor, base: Reading | None = None
) -> tuple[Masked, Masked]:
    """The rest of the text as one block over the prefix's entries, under the right mask and under the mistaken one.

    ``base`` has read the prefix, and stays as it is.
    """
    base = base or read_prefix(model, ids, prefix)
    rest, found = ids[prefix:], []
    for mask in (right_mask(len(rest), prefix), corner_mask(len(rest), prefix)):
        logits = base.copy().read(rest, visible=mask.to(ids.device))
        found.append(Masked(compare(logits, uncached, prefix), losses_of(logits, rest)))
    return found[0], found[1]


def read_prefix(model: PreTrainedModel, ids: Tensor, prefix: int) -> Reading:
    """A reading that holds the entries of the prefix."""
    reading = Reading(model)
    reading.read(ids[:prefix])
    return reading


def losses_of(logits: Tensor, rest: Tensor) -> Losses:
    """What each token of the rest (q,) but its first cost, (q − 1,) nats."""
    found: Losses = token_losses(logits, rest[1:]).cpu().numpy()
    return found

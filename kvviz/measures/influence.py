"""What of the input a hidden state really depends on: shares of gradients, rollout of attention, the strongest relay.

The influence of position j on token t after n layers is ‖∂ ½‖h_t‖² / ∂x_j‖, with h the hidden state after layer n and x
the input of the first layer; shown as a share of its sum over j. Positions outside the reach get exactly 0.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.floating]


def shares(norms: Tensor) -> Tensor:
    """Each row as shares of its sum, in float64; a row of zeros stays zeros."""
    wide = norms.double()
    return wide / wide.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)


def mixing(weights: Tensor) -> Tensor:
    """How a layer mixes positions, (A, T, T) → (T, T): ½·I + ½·mean over heads of the attention, rows summing to 1.

    The half that stays stands for the residual stream (Abnar and Zuidema, Quantifying Attention Flow, 2020).
    """
    mean = weights.double().mean(0)
    mixed = 0.5 * (torch.eye(len(mean), dtype=mean.dtype, device=mean.device) + mean)
    return mixed / mixed.sum(-1, keepdim=True)


def hop(strength: Tensor, logs: Tensor) -> tuple[Tensor, Tensor]:
    """One layer down the strongest path: the log strength of reaching each position, (T,), and from where, (T,).

    ``strength`` is that of each position of the level above, ``logs`` those of the mixing weights: a path is as strong
    as the product of its weights.
    """
    reached, origin = (strength[:, None] + logs).max(0)
    return reached, origin


def relay(came_from: NDArray[np.integer], query: int, source: int) -> list[int]:
    """The strongest path as one position a level, from ``source`` in the input to ``query`` at the top.

    ``came_from`` (depth, T) says for each level from the input up which position of the next level it is read by.
    """
    path = [source]
    for level in came_from:
        path.append(int(level[path[-1]]))
    assert path[-1] == query, f"the path from {source} ends at {path[-1]}, not at {query}"
    return path


def nearest(row: Floats, part: float = 0.99) -> int:
    """How many of the latest positions hold at least ``part`` of a row of shares that ends at its query."""
    latest = np.cumsum(row[::-1])
    return int(np.searchsorted(latest, part * latest[-1] - 1e-12) + 1)


def by_distance(row: Floats) -> Floats:
    """A row of shares that ends at its query, nearest first: [0] is the query's own position."""
    return row[::-1]


def beyond(row: Floats, direct: NDArray[np.bool_]) -> float:
    """The share of the positions that the query's own layer cannot see: what only relays can have brought."""
    return float(row[~direct].sum())

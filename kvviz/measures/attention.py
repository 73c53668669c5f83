"""What one row of attention weights says: a few numbers per query, and one object for each that pages choose from.

Weights (A, R, K) are shares of R queries over K slots; a row sums to 1 (to less with softmax off by one).
Positions broadcast against them as (A, 1, K); queries are (R,).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kvviz.measures.sinks import SINKS

if TYPE_CHECKING:
    from torch import Tensor  # menus list the measures before torch is there

Floats = NDArray[np.floating]

RECENT = 16  # latest tokens that count as recent
FIRST = 8  # positions at the text's beginning whose weights are kept apart


def sink_mass(weights: Tensor, positions: Tensor, sinks: int) -> Tensor:
    """Share of each query's attention on the first ``sinks`` positions of the text: Σ_{j < s} w_j, (A, R)."""
    return (weights * (positions < sinks)).sum(-1)


def entropy(weights: Tensor) -> Tensor:
    """−Σ w_j ln w_j of each row in nats, (A, R): 0 when one slot gets all, ln K when all get the same."""
    import torch

    return torch.special.entr(weights).sum(-1)


def mean_distance(weights: Tensor, positions: Tensor, queries: Tensor) -> Tensor:
    """Σ w_j (t − j) / Σ w_j of each row in positions, (A, R)."""
    distance = queries[:, None] - positions
    return (weights * distance).sum(-1) / weights.sum(-1)


def recent_mass(weights: Tensor, positions: Tensor, queries: Tensor, recent: int) -> Tensor:
    """Share of each query's attention on the latest ``recent`` positions, its own included, (A, R)."""
    return (weights * (positions > queries[:, None] - recent)).sum(-1)


def first_weights(weights: Tensor, positions: Tensor, first: int) -> Tensor:
    """The weight on each of the first ``first`` positions of the text, (A, R, first); 0 where it is not there.

    ``positions`` (A, K) ascend, so only the first slots can hold them.
    """
    import torch

    is_there = positions[:, :first, None] == torch.arange(first, device=positions.device)
    return torch.bmm(weights[..., :first], is_there.to(weights.dtype))


@dataclass(frozen=True)
class Rows:
    """What a measure is taken of: weights (A, R, K), positions (A, 1, K), queries (R,), how many tokens are sinks."""

    weights: Tensor
    positions: Tensor
    queries: Tensor
    sinks: int = SINKS


@dataclass(frozen=True)
class Measure:
    """A number per query and head: what it is called, how it is taken, and the most it can be."""

    name: str  # in ``Trace.measures`` and in a link
    title: str  # in menus
    unit: str
    rule: Callable[[Rows], Tensor]  # → (A, R)
    most: Callable[[Floats], Floats]  # the largest possible value for queries at these positions, (Q,) → (Q,)

    def shares(self, values: Floats, queries: Floats) -> Floats:
        """``values`` (…, Q) as shares of the most they could be, 0 to 1, so that layers and texts compare."""
        found: Floats = np.clip(values / np.maximum(self.most(queries), 1e-9), 0, 1)
        return found


def one(queries: Floats) -> Floats:
    return np.ones_like(queries, dtype=np.float64)


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "sink_mass",
            f"sink mass: share of attention on the first {SINKS} tokens",
            "share of 1",
            lambda rows: sink_mass(rows.weights, rows.positions, rows.sinks),
            one,
        ),
        Measure(
            "recent_mass",
            f"recent mass: share of attention on the latest {RECENT} tokens",
            "share of 1",
            lambda rows: recent_mass(rows.weights, rows.positions, rows.queries, RECENT),
            one,
        ),
        Measure(
            "entropy",
            "entropy: 1 = spread evenly over all keys",
            "nats",
            lambda rows: entropy(rows.weights),
            lambda queries: np.log(queries + 1.0),
        ),
        Measure(
            "mean_distance",
            "mean distance: 1 = as far back as possible",
            "positions",
            lambda rows: mean_distance(rows.weights, rows.positions, rows.queries),
            lambda queries: queries * 1.0,
        ),
    )
}

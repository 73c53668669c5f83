"""Random eviction: the baseline that any clever score has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.knobs import BUDGET_LIMIT, knob
from kvviz.policies.base import Policy, View, top

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Random(Policy):
    """Give each token a random rank once and keep the newest and the B − 1 best: S_t = {t} ∪ top_{B−1}(u_j).

    u_j is a hash of (seed, layer, KV head, position), so every layer and head draws its own set and a run can be
    repeated anywhere. Source: the random baseline of kvpress (NVIDIA, 2024); there it acts once after the prompt,
    here at every token.
    """

    title = "Random: a random rank per token"
    source = "NVIDIA, kvpress: RandomPress, 2024"
    differs = True
    budget: int = knob(256, "keys a query may see", 1, BUDGET_LIMIT)
    seed: int = knob(0, "seed of the random order", 0, 2**31 - 1)

    def keep(self, view: View) -> Tensor:
        rank = mix(mix(mix(mix(view.positions * 0 + self.seed) + view.layer) + view.head) + view.positions)
        is_newest = view.positions == view.newest
        return top((rank >> 1).masked_fill(is_newest, 2**63 - 1), view.limit)

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        return "recent" if position == newest else "other"


def mix(x: Tensor) -> Tensor:
    """The finaliser of SplitMix64 (Steele et al., 2014) on int64, whose products wrap: every input bit moves half."""
    x = x + (0x9E3779B97F4A7C15 - 2**64)
    x = (x ^ logical_shift(x, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
    x = (x ^ logical_shift(x, 27)) * (0x94D049BB133111EB - 2**64)
    return x ^ logical_shift(x, 31)


def logical_shift(x: Tensor, bits: int) -> Tensor:
    """Right shift that brings in zeros; torch's own brings in the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)

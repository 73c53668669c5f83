"""SnapKV: the end of the prompt votes once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.knobs import BUDGET_LIMIT, fitted, knob, word
from kvviz.policies.attention_window import check_observe, voters
from kvviz.policies.base import PromptEnd, View

if TYPE_CHECKING:
    from torch import Tensor

POOLINGS = ("average", "max")


@dataclass(frozen=True)
class Snapkv(PromptEnd):
    """When the prompt of P tokens has been read, keep its last w tokens and the B − w that these w queries looked at.

    S_{P−1} = {j ≥ P − w} ∪ top_{B−w}(pool_k(v)_j), v_j = Σ_{i=P−w}^{P−1} α_ij over the keys before the window; pooling
    over k neighbours lets a token's surroundings stay with it. Tokens after the prompt are added and never evicted.

    Source: Li et al., SnapKV: LLM Knows What You are Looking for Before Generation (2024). Departures: scores per KV
    head (the mean over its query heads), where the authors store one set per query head; edges are not padded, a mean
    is taken over the neighbours that exist (their zero padding punishes the very first tokens).
    """

    title = "SnapKV: attention at prompt end"
    source = "Li et al., SnapKV: LLM Knows What You are Looking for Before Generation, 2024"
    needs = ("rows",)
    scores_alone = False  # neighbours are pooled
    pools = True
    budget: int = knob(256, "prompt entries kept", 2, BUDGET_LIMIT)
    observe: int = fitted(voters, "latest queries whose attention counts", 1, 1024)
    kernel: int = knob(5, "neighbours averaged together", 1, 63)
    pooling: str = word("average", "average or maximum of the neighbours", POOLINGS)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_observe(self.name(), self.observe, self.budget)
        if self.kernel % 2 == 0:
            raise ValueError(f"{self.name()}: kernel={self.kernel} must be odd, so that it has a middle.")

    @property
    def observes(self) -> int:
        return self.observe

    def votes(self, view: View) -> Tensor:
        return view.statistics["rows"].sum(1).masked_fill(view.age < self.observe, 0)

    def score(self, view: View) -> Tensor:
        is_voter = view.age < self.observe
        return pooled(self.votes(view), self.kernel, self.pooling, ~is_voter).masked_fill(is_voter, math.inf)

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        if self.is_before_choice(newest, prompt_tokens):
            return "other"
        if position >= prompt_tokens:
            return "recent"
        return "window" if position >= prompt_tokens - self.observe else "heavy"


def pooled(votes: Tensor, kernel: int, pooling: str, counts: Tensor) -> Tensor:
    """The mean or the largest of each slot's ``kernel`` neighbours that ``counts`` (H, K) as such; votes (H, K)."""
    from torch.nn import functional as F

    side = kernel // 2
    if pooling == "max":
        hidden = votes.masked_fill(~counts, -math.inf)
        return F.max_pool1d(F.pad(hidden, (side, side), value=-math.inf), kernel, 1)
    total = F.avg_pool1d(F.pad(votes, (side, side)), kernel, 1) * kernel
    neighbours = F.avg_pool1d(F.pad(counts.to(votes.dtype), (side, side)), kernel, 1) * kernel
    return total / neighbours.clamp(min=1)

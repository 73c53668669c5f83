"""H2O: heavy hitters by accumulated attention, and the latest tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.knobs import BUDGET_LIMIT, fitted, knob, switch
from kvviz.policies.base import Scored, View

if TYPE_CHECKING:
    from torch import Tensor


def half(budget: int) -> int:
    return max(1, budget // 2)


@dataclass(frozen=True)
class H2O(Scored):
    """Keep the latest r tokens, s sinks, and the B − r − s others that received most attention since they came.

    S_t = {j < s} ∪ {j > t − r} ∪ top_{B−r−s}(Σ_{i=j}^{t−1} α_ij), the sum divided by t − j, the number of queries
    that could see j, when ``normalise`` is on: raw sums favour old tokens, whatever they mean.

    Source: Zhang et al., H2O: Heavy-Hitter Oracle for Efficient Generative Inference (2023). Departures: scores per KV
    head (the mean over its query heads), a token's own weight α_jj counts, the budget includes the query's own key,
    eviction also inside the prompt, and never a look at later queries (the authors' evaluation code takes them).
    """

    title = "H2O: heavy hitters + latest"
    source = "Zhang et al., H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models, 2023"
    needs = ("received",)
    budget: int = knob(256, "keys a query may see", 1, BUDGET_LIMIT)
    recent: int = fitted(half, "latest tokens always kept", 1, BUDGET_LIMIT)
    sinks: int = knob(0, "first tokens always kept", 0, 64)
    normalise: bool = switch(False, "divide by the queries that could see the key")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recent(self.name(), self.recent, self.sinks, self.budget)

    @classmethod
    def name(cls) -> str:
        return "h2o"

    def score(self, view: View) -> Tensor:
        received = view.statistics["received"]
        score = received / view.age.clamp(min=1) if self.normalise else received
        score = score.masked_fill(view.age < self.recent, math.inf)
        return score.masked_fill(view.positions < self.sinks, math.inf) if self.sinks else score

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        if position < self.sinks:
            return "sink"
        return "recent" if newest - position < self.recent else "heavy"


def check_recent(name: str, recent: int, sinks: int, budget: int) -> None:
    """Refuse protected tokens that alone exceed the budget."""
    if recent + sinks > budget:
        protected = f"recent={recent} and sinks={sinks}" if sinks else f"recent={recent}"
        raise ValueError(
            f"{name}: {protected} are more than budget={budget}; choose recent from 1 to {budget - sinks}"
            " or a larger budget."
        )

"""Attention window: the sources' simple score, attention received from the latest queries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.knobs import BUDGET_LIMIT, fitted, knob
from kvviz.policies.base import Scored, View
from kvviz.policies.h2o import check_recent, half

if TYPE_CHECKING:
    from torch import Tensor


def voters(budget: int) -> int:
    return min(32, max(1, budget - 1))


@dataclass(frozen=True)
class AttentionWindow(Scored):
    """Keep the latest r tokens and the B − r others that the latest w queries looked at most.

    S_t = {j > t − r} ∪ top_{B−r}(s_j), s_j = Σ_{i∈W} α_ij with W = {t − w, …, t − 1}.

    Source: the simplified score by which pruning is usually explained; Scissorhands (Liu et al., 2023) counts over
    such a window. Departures: sums of weights instead of counts; scores per KV head; evicting at every token.
    """

    title = "Attention window: latest queries"
    source = "Liu et al., Scissorhands: Exploiting the Persistence of Importance Hypothesis, 2023"
    needs = ("rows",)
    budget: int = knob(256, "keys a query may see", 1, BUDGET_LIMIT)
    recent: int = fitted(half, "latest tokens always kept", 1, BUDGET_LIMIT)
    observe: int = fitted(voters, "latest queries whose attention counts", 1, 1024)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recent(self.name(), self.recent, 0, self.budget)
        check_observe(self.name(), self.observe, self.budget)

    @property
    def observes(self) -> int:
        return self.observe

    def score(self, view: View) -> Tensor:
        return view.statistics["rows"].sum(1).masked_fill(view.age < self.recent, math.inf)

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        return "recent" if newest - position < self.recent else "heavy"


def check_observe(name: str, observe: int, budget: int) -> None:
    """Refuse an observation window that does not leave room in the budget."""
    if budget < 2:
        raise ValueError(f"{name}: budget={budget} leaves no room to observe a query; choose a budget of at least 2.")
    if observe >= budget:
        raise ValueError(
            f"{name}: observe={observe} must be below budget={budget}; choose at most {budget - 1} or a larger budget."
        )

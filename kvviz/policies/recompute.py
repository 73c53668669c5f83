"""Sliding window with re-computation: no cache at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.knobs import BUDGET_LIMIT, knob
from kvviz.policies.base import Policy, View

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Recompute(Policy):
    """Predict each token by a fresh forward over the latest B tokens, numbered from 0: S_t = {j : t − B < j ≤ t}.

    The window's first token is really the first one the model sees, so it serves as a sink; that is why this predicts
    well where a cached window does not. It keeps nothing and costs B² per token.

    Source: the baseline of Xiao et al., Efficient Streaming Language Models with Attention Sinks (2023). Departures:
    B counts the newest token; for long texts a sample of the positions is computed, and the number is shown.
    """

    title = "Re-computation: no cache at all"
    source = "Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023"
    recomputes = True
    budget: int = knob(256, "latest tokens computed again", 1, BUDGET_LIMIT)

    def keep(self, view: View) -> Tensor:
        return view.age < self.budget

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        return "recent"

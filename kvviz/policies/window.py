"""Sliding window: the latest tokens only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.knobs import BUDGET_LIMIT, knob
from kvviz.policies.base import Policy, View

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Window(Policy):
    """Keep the latest B tokens: S_t = {j : t − B < j ≤ t}.

    Source: window attention as drawn by Xiao et al. (2023), and Mistral 7B (2023). The query's own key counts as
    one of the B, as in Mistral; StreamingLLM's code would see one key more.
    """

    title = "Sliding window: latest tokens"
    source = "Jiang et al., Mistral 7B, 2023"
    budget: int = knob(256, "keys a query may see", 1, BUDGET_LIMIT)

    def keep(self, view: View) -> Tensor:
        return view.positions > view.newest - self.budget

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        return "recent"

    def ends_held(self, entries: int) -> tuple[int, int] | None:
        return 0, entries

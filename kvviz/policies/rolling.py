"""Rolling buffer: the sliding window, stored in a ring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.knobs import BUDGET_LIMIT, knob
from kvviz.policies.base import Policy, View

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Rolling(Policy):
    """Write position i into slot i mod B, over what was there: S_t = {j : t − B < j ≤ t}.

    Source: the rolling buffer cache of Mistral 7B (2023). It holds the same tokens as ``window``; only the place
    differs. Slots are reported in position order all the same, and the ring is drawn from slot = position mod B.
    """

    title = "Rolling buffer: a ring of slots"
    source = "Jiang et al., Mistral 7B, 2023"
    is_ring = True
    budget: int = knob(256, "slots in the ring", 1, BUDGET_LIMIT)

    def keep(self, view: View) -> Tensor:
        is_overwritten = view.positions + self.budget <= view.newest
        return ~is_overwritten

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        return "recent"

    def ends_held(self, entries: int) -> tuple[int, int] | None:
        return 0, entries

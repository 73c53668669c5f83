"""The full cache: nothing is ever evicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.policies.base import Policy, View

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Full(Policy):
    """Keep every token: S_t = {0, …, t}.

    Source: ordinary causal decoding with a KV cache (Vaswani et al., 2017). No departures.
    """

    title = "Full cache: nothing is evicted"
    source = "Vaswani et al., Attention Is All You Need, 2017"

    def keep(self, view: View) -> Tensor:
        return view.positions <= view.newest

    def ends_held(self, entries: int) -> tuple[int, int] | None:
        return 0, entries

"""StreamingLLM: the first tokens as attention sinks, and the latest ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.knobs import BUDGET_LIMIT, knob
from kvviz.policies.base import Policy, View, top

if TYPE_CHECKING:
    from torch import Tensor

SINKS = 4  # as many first tokens as the authors keep; wherever nothing else is said, that many count as sinks


@dataclass(frozen=True)
class Streaming(Policy):
    """Keep s sinks and the latest B − s tokens: S_t = {j : j < s} ∪ {j : t − (B − s) < j ≤ t}.

    Source: Xiao et al., Efficient Streaming Language Models with Attention Sinks (2023). Departures: the budget
    counts the query's own key (the authors' code sees one more), and the limit holds inside the prompt too. The
    authors number positions by slot; here ``positions=slot`` does that and ``positions=original`` does not. Where a
    model's own sliding layers have lost the sinks, recent tokens fill their places.
    """

    title = "StreamingLLM: sinks + latest"
    source = "Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023"
    budget: int = knob(256, "keys a query may see", 1, BUDGET_LIMIT)
    sinks: int = knob(SINKS, "first tokens always kept", 0, 64)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sinks > self.budget - 1:
            raise ValueError(
                f"streaming: sinks={self.sinks} leaves no room for the query's own key in budget={self.budget}; "
                f"choose at most {self.budget - 1} sinks or a larger budget."
            )

    def keep(self, view: View) -> Tensor:
        is_sink = view.positions < self.sinks
        return top(view.positions.masked_fill(is_sink, view.newest + 1), view.limit)

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        return "sink" if position < self.sinks else "recent"

    def ends_held(self, entries: int) -> tuple[int, int] | None:
        return min(self.sinks, entries), max(0, entries - self.sinks)

"""TOVA: one query's opinion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.knobs import BUDGET_LIMIT, knob
from kvviz.policies.base import Scored, View

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Tova(Scored):
    """Keep what the last query looked at most: S_t = {t} ∪ top_{B−1}(α_{t−1,j}).

    Source: Oren et al., Transformers are Multi-State RNNs (2024). Departures: the newest token is always kept (the
    authors may drop it at once), and scores are per KV head, where the authors share one set among all heads.
    """

    title = "TOVA: last query's attention"
    source = "Oren et al., Transformers are Multi-State RNNs, 2024"
    needs = ("rows",)
    budget: int = knob(256, "keys a query may see", 1, BUDGET_LIMIT)

    @property
    def observes(self) -> int:
        return 1

    def score(self, view: View) -> Tensor:
        return view.statistics["rows"][:, -1].masked_fill(view.positions == view.newest, math.inf)

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        return "recent" if position == newest else "other"

"""Knorm: small keys stay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.policies.base import PromptEnd, View

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Knorm(PromptEnd):
    """When the prompt of P tokens has been read, keep its last token and the B − 1 with the smallest keys.

    S_{P−1} = {P − 1} ∪ top_{B−1}(−‖k_j‖). Tokens after the prompt are added and never evicted. No attention is read.

    Source: Devoto et al., A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression (2024). Departures:
    the prompt's last token always stays; the authors leave the first two layers alone. A model that normalises its
    keys (Qwen 3) has lengths that say little, so there this ranks by noise.
    """

    title = "Knorm: keys of smallest norm"
    source = "Devoto et al., A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression, 2024"
    needs = ("key_norm",)

    def score(self, view: View) -> Tensor:
        return (-view.statistics["key_norm"]).masked_fill(view.positions == view.newest, math.inf)

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        return (
            "recent" if position >= prompt_tokens - 1 and not self.is_before_choice(newest, prompt_tokens) else "other"
        )

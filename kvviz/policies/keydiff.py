"""KeyDiff: keys unlike the others stay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.policies.base import PromptEnd, View

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Keydiff(PromptEnd):
    """When the prompt of P tokens has been read, keep its last token and the B − 1 whose keys point elsewhere.

    S_{P−1} = {P − 1} ∪ top_{B−1}(−cos(k_j, a)), a = mean_j k_j/‖k_j‖ over all keys of the prompt. Tokens after the
    prompt are added and never evicted. No attention is read.

    Source: Park et al., KeyDiff: Key Similarity-Based KV Cache Eviction for Long-Context LLM Inference (2025).
    Departures: the prompt's last token always stays; the authors also evict block by block while they read.
    """

    title = "KeyDiff: keys unlike the others"
    source = "Park et al., KeyDiff: Key Similarity-Based KV Cache Eviction for Long-Context LLM Inference, 2025"
    needs = ("key",)
    scores_alone = False  # the anchor is made of all keys

    def score(self, view: View) -> Tensor:
        from torch.nn import functional as F

        keys = view.statistics["key"]
        anchor = F.normalize(keys, dim=-2).mean(-1, keepdim=True)
        likeness = F.cosine_similarity(keys, anchor, dim=-2)
        return (-likeness).masked_fill(view.positions == view.newest, math.inf)

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        return (
            "recent" if position >= prompt_tokens - 1 and not self.is_before_choice(newest, prompt_tokens) else "other"
        )

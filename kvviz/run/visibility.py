"""What the rows of one block see in one layer: which slots, and how far a renumbering moves them."""

from __future__ import annotations

import torch
from torch import Tensor

from kvviz.choices.patterns import Pattern
from kvviz.eviction.schedule import LayerSchedule


class Visibility:
    """Which slots the rows of one block see in one layer (or in all layers that are alike); H KV heads, K slots.

    ``last`` is the position of the last of the ``queries`` (R,).
    """

    def __init__(self, schedule: LayerSchedule, queries: Tensor, last: int, pattern: Pattern, layer: int):
        self.positions, self.queries = schedule.positions, queries
        self.present = schedule.present(queries, last)  # (H, R, K)
        one_set = slice(0, 1) if schedule.one_set else slice(None)  # seen once, named for every head
        places = queries, self.positions[one_set]
        shown = shown_by(pattern, self.present[one_set], *places, layer, len(self.positions))
        self.visible = shown.expand(self.present.shape)
        rows, slots = self.present.shape[1:]
        sees_all = pattern.hides_nothing and schedule.sees_all(last)
        self.is_causal = sees_all and slots == rows > 1  # each row sees all before it, and the fused kernel has that
        self.is_whole = sees_all and rows == 1

    @property
    def mask(self) -> Tensor | None:
        """What the fused kernel is given; None where it needs no mask."""
        return None if self.is_causal or self.is_whole else self.visible

    @property
    def shift(self) -> Tensor:
        """With ``positions=slot``, how far each key moves towards its query, (H, R, K)."""
        return shift_of(self.present, self.queries, self.positions)


def shown_by(
    pattern: Pattern, present: Tensor, queries: Tensor, positions: Tensor, layer: int, kv_heads: int
) -> Tensor:
    """The slots present (h, R, K) that the pattern shows to queries (R,), bool; ``positions`` (h, K).

    With one set for all heads, h = 1, the answer has an axis of all heads where the pattern tells them apart.
    """
    if pattern.hides_nothing:
        return present
    heads = torch.arange(kv_heads, device=queries.device).view(-1, 1, 1)
    return present & pattern.sees(queries[:, None], positions[:, None], layer, heads)


def shift_of(present: Tensor, queries: Tensor, positions: Tensor) -> Tensor:
    """How far a renumbering by slot moves each key towards its query, (H, R, K); 0 where the row has no such key.

    That is how many positions between the key and its query are no longer in the cache.
    """
    count = present.long()
    later = count.sum(-1, keepdim=True) - count.cumsum(-1)
    return torch.where(present, queries[:, None] - positions[:, None, :] - later, 0)

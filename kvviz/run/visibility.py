"""What the rows of one block see in one layer: which slots, how far a renumbering moves them, with what weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvviz.cache.quantiser import coded_keys
from kvviz.choices.patterns import Causal
from kvviz.choices.setup import Setup
from kvviz.choices.storage import Quantised
from kvviz.eviction.by_position import BlockPlan
from kvviz.run import attention
from kvviz.run.attention import Rule

if TYPE_CHECKING:
    from kvviz.run.engine import Pass


class Sight:
    """Which slots the rows of one block see in one layer (or in all layers that are alike)."""

    def __init__(self, block: BlockPlan, queries: Tensor, setup: Setup, layer: int, heads: Tensor):
        single = len(queries) == 1 and block.coding is None  # slots are coded before any is dropped
        self.coding = block.coding
        self.shrink_first = block.survivors if single else None
        self.shrink_after = None if single else block.survivors
        self.positions, leaves_at = block.positions, block.leaves_at
        if self.shrink_first is not None:  # one row sees exactly what survives its own step
            self.positions = self.positions.gather(-1, self.shrink_first)
            leaves_at = leaves_at.gather(-1, self.shrink_first)
        rows = queries[:, None]
        keys = self.positions[:, None, :]
        self.present = (keys <= rows) & (rows < leaves_at[:, None, :])  # (H or 1, R, K)
        self.visible = self.present
        is_causal = isinstance(setup.pattern, Causal)
        if not is_causal:
            self.visible = self.present & setup.pattern.sees(rows, keys, layer, heads)
        self.is_causal = is_causal and not single and block.survivors is None and keys.shape[-1] == len(queries)
        self.mask = None if self.is_causal or (single and is_causal) else self.visible
        self.queries = queries

    @property
    def shift(self) -> Tensor:
        """How many positions between each key and its query are no longer in the cache, (H or 1, R, K).

        With ``positions=slot`` a key moves that much towards its query.
        """
        return shift_of(self.present, self.queries, self.positions)


class Rows:
    """The rows of one block in one layer, weighed part by part as the walk asks."""

    def __init__(self, run: Pass, layer: int, query: Tensor, key: Tensor, rule: Rule):
        self.run, self.layer, self.query, self.rule = run, layer, query, rule
        self.exact, self.key = key, key.clone() if isinstance(run.setup.storage, Quantised) else key
        self.raw = None if run.ropes else attention.scores(query, key, rule)
        heads, slots = key.shape[1:3]
        dtype = torch.promote_types(key.dtype, torch.float32)
        shape = (heads, query.shape[1] // heads, query.shape[2], slots)
        self.weights = torch.zeros(shape, dtype=dtype, device=key.device)

    def weigh(self, part: slice, positions: Tensor, present: Tensor) -> Tensor:
        """Weights (H, G, r, K) of some rows over the slots at these positions (H, K), ``present`` or not (H, r, K)."""
        pattern, visible = self.run.setup.pattern, present
        if not isinstance(pattern, Causal):
            queries = self.run.queries[part, None]
            visible = present & pattern.sees(queries, positions[:, None], self.layer, self.run.heads)
        return attention.weights_of(self.scores(part, positions, present), visible, self.rule)

    def recode(self, heads: Tensor, slots: Tensor, row: int) -> None:
        """From ``row`` on these keys, (e,) heads and (e, residual) slots, are seen coded."""
        storage = self.run.setup.storage
        assert isinstance(storage, Quantised)
        keys = coded_keys(self.exact, heads, slots, storage)
        self.key[0][heads[:, None], slots] = keys
        rows = self.query.shape[2]
        if self.raw is None or row >= rows:
            return
        query = self.query[0].view(len(self.raw), -1, rows, self.query.shape[-1])
        for head, picked, key in zip(heads.tolist(), slots, keys, strict=True):
            self.raw[head, :, row:, picked] = query[head, :, row:] @ key.T * self.rule.scaling

    def scores(self, part: slice, positions: Tensor, present: Tensor) -> Tensor:
        if self.raw is not None:
            return self.raw[:, :, part]
        shift = shift_of(present, self.run.queries[part], positions)
        return attention.slot_scores(self.query[:, :, part], self.key, self.rule, shift, self.run.ropes[self.layer])


def shift_of(present: Tensor, queries: Tensor, positions: Tensor) -> Tensor:
    """How far a renumbering by slot moves each key towards its query, (H, R, K); 0 where the row has no such key."""
    count = present.long()
    later = count.sum(-1, keepdim=True) - count.cumsum(-1)
    return torch.where(present, queries[:, None] - positions[:, None, :] - later, 0)

"""One block of query rows in one layer: its scores, its weights and its output, whoever decides what it sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from kvviz.cache.quantiser import BlockQuantisation
from kvviz.choices.patterns import Pattern
from kvviz.eviction.schedule import LayerSchedule
from kvviz.models.rope import Rope
from kvviz.run import attention
from kvviz.run.attention import Rule
from kvviz.run.visibility import Visibility, shift_of, shown_by


class Recorder(Protocol):
    """Whoever measures the attention weights as they pass."""

    def record(self, layer: int, weights: Tensor, positions: Tensor, visible: Tensor, queries: Tensor) -> None:
        """Weights (A, R, K), positions (H, K), visible (H, R, K) bool, query positions (R,)."""

    def enter(self, layer: int, key: Tensor, value: Tensor, queries: Tensor) -> None:
        """A block's new entries: key and value (H, R, D), positions (R,)."""


@dataclass(frozen=True, eq=False)
class LayerContext:
    """What a block needs to know of its layer and its run."""

    layer: int
    queries: Tensor  # (R,) positions of the rows
    pattern: Pattern
    rope: Rope | None  # where kept keys are numbered by slot


class Block:
    """Query (1, A, R, D) against keys and values (1, H, K, D), the carried ones first, the block's own last."""

    def __init__(self, context: LayerContext, query: Tensor, key: Tensor, value: Tensor, rule: Rule):
        self.context, self.query, self.key, self.value, self.rule = context, query, key, value, rule
        self.rows = query.shape[2]
        self.weights: Tensor | None = None  # (H, G, R, K), where the rows are weighed one part at a time
        self.seen_key = key  # where rows of this block already see some of them quantised, a copy with those
        self.raw: Tensor | None = None

    @property
    def keys(self) -> Tensor:
        """Of the block's own tokens, (H, R, D)."""
        return self.key[0, :, -self.rows :]

    @property
    def values(self) -> Tensor:
        return self.value[0, :, -self.rows :]

    def open_weights(self) -> None:
        """The rows will be weighed part by part."""
        heads, slots = self.key.shape[1:3]
        shape = (heads, self.query.shape[1] // heads, self.rows, slots)
        wide = torch.promote_types(self.key.dtype, torch.float32)
        self.weights = torch.zeros(shape, dtype=wide, device=self.key.device)
        if self.context.rope is None:
            self.raw = attention.scores(self.query, self.key, self.rule)

    def weigh(self, part: slice, positions: Tensor, present: Tensor) -> Tensor:
        """Weights (H, G, r, K) of some rows over the slots at ``positions`` (H, K), ``present`` or not (H, r, K)."""
        assert self.weights is not None, "open_weights comes first"
        queries, layer = self.context.queries[part], self.context.layer
        visible = shown_by(self.context.pattern, present, queries, positions, layer, len(positions))
        found = attention.weights_of(self.part_scores(part, positions, present), visible, self.rule)
        self.weights[:, :, part] = found
        return found

    def part_scores(self, part: slice, positions: Tensor, present: Tensor) -> Tensor:
        if self.raw is not None:
            return self.raw[:, :, part]
        assert self.context.rope is not None
        shift = shift_of(present, self.context.queries[part], positions)
        return attention.slot_scores(self.query[:, :, part], self.seen_key, self.rule, shift, self.context.rope)

    def replace_keys(self, heads: Tensor, slots: Tensor, keys: Tensor, row: int) -> None:
        """From ``row`` on the keys of these (e,) heads and (e, n) slots are seen as ``keys`` (e, n, D)."""
        if self.seen_key is self.key:
            self.seen_key = self.key.clone()
        self.seen_key[0][heads[:, None], slots] = keys
        if self.raw is None or row >= self.rows:
            return
        query = self.query[0].view(len(self.raw), -1, self.rows, self.query.shape[-1])
        for head, picked, key in zip(heads.tolist(), slots, keys, strict=True):
            self.raw[head, :, row:, picked] = query[head, :, row:] @ key.T * self.rule.scaling

    def output(self, schedule: LayerSchedule, visibility: Visibility, recorder: Recorder | None) -> Tensor:
        """What the block's rows attend to, (1, R, A, D); the recorder is shown the weights."""
        quantised = schedule.quantisation
        if recorder is None and self.may_fuse(quantised):
            mask, is_causal = visibility.mask, visibility.is_causal
            return attention.fused(self.query, self.key, self.value, mask, self.rule, is_causal)
        weights = self.all_weights(visibility, quantised) if self.weights is None else self.weights
        if recorder is not None:
            queries = self.context.queries
            recorder.record(self.context.layer, weights.flatten(0, 1), schedule.positions, visibility.visible, queries)
        return self.combine(weights, quantised)

    def may_fuse(self, quantised: BlockQuantisation | None) -> bool:
        """Whether torch's fused kernel, which never forms the weights, computes the same."""
        is_exact = quantised is None or quantised.is_idle
        return self.weights is None and self.context.rope is None and self.rule.is_plain and is_exact

    def all_weights(self, visibility: Visibility, quantised: BlockQuantisation | None) -> Tensor:
        shift = None if self.context.rope is None else visibility.shift
        return attention.weights_of(self.scores(quantised, shift), visibility.visible, self.rule)

    def scores(self, quantised: BlockQuantisation | None, shift: Tensor | None) -> Tensor:
        """Scores of all rows before any mask, each row seeing those keys quantised that were before it."""
        raw = self.key_scores(self.key, shift)
        if quantised is None or not len(quantised.heads):
            return raw
        coded = self.key_scores(quantised.keys(self.key), shift)
        is_later = self.context.queries[:, None] > quantised.key_at[:, None]
        return torch.where(is_later[:, None], coded, raw)

    def key_scores(self, key: Tensor, shift: Tensor | None) -> Tensor:
        """With the keys where they were, or moved towards their query."""
        if shift is None or self.context.rope is None:
            return attention.scores(self.query, key, self.rule)
        return attention.slot_scores(self.query, key, self.rule, shift, self.context.rope)

    def combine(self, weights: Tensor, quantised: BlockQuantisation | None) -> Tensor:
        """Weighted values, of which each row sees those quantised that were before it."""
        if quantised is None or not bool(quantised.new_values.any()):
            return attention.combine(weights, self.value)
        is_later = (self.context.queries[:, None] > quantised.value_at[:, None])[:, None]
        exact = attention.combine(weights.masked_fill(is_later, 0), self.value)
        return exact + attention.combine(weights.masked_fill(~is_later, 0), quantised.values(self.value))

"""The one engine: blocks of query rows meet the slots carried from before.

Teacher forcing needs no stepping: within a layer the keys and values of a token do not depend on what is evicted
later, so a block of rows is computed at once, every row seeing exactly the slots it would have seen had the tokens
come one at a time. After the block the slots really shrink. ``replay`` feeds large blocks, ``generate`` blocks of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.cache.quantiser import Coding
from kvviz.cache.slots import SlotsLayer, native_windows, slots_cache
from kvviz.cache.stores import gather_slots, storage_notes
from kvviz.choices.setup import Setup
from kvviz.choices.storage import Quantised, Widths
from kvviz.eviction.by_attention import Walk
from kvviz.eviction.by_position import BlockPlan, Plan, PlanContext
from kvviz.eviction.lifetimes import History
from kvviz.models.heads import kv_heads_of
from kvviz.models.rope import ropes_of
from kvviz.run import attention
from kvviz.run.attention import Rule
from kvviz.run.visibility import Rows, Sight


class Recorder(Protocol):
    """Whoever measures the attention weights as they pass."""

    def record(self, layer: int, weights: Tensor, positions: Tensor, visible: Tensor, queries: Tensor) -> None:
        """Weights (A, R, K), positions (H, K), visible (H or 1, R, K) bool, query positions (R,)."""

    def enter(self, layer: int, key: Tensor, value: Tensor, queries: Tensor) -> None:
        """A block's new entries: key and value (H, R, D), positions (R,)."""


class Pass:
    """One pass of a model over one text under a setup: feed it blocks of tokens, it returns logits.

    Raises ValueError where the setup has no meaning for the model.
    """

    def __init__(
        self, model: PreTrainedModel, setup: Setup, *, prompt_tokens: int, recorder: Recorder | None = None
    ) -> None:
        config = model.config.get_text_config(decoder=True)
        self.model, self.setup, self.recorder = model, setup, recorder
        self.layers, self.kv_heads = config.num_hidden_layers, kv_heads_of(config)
        self.heads = torch.arange(self.kv_heads, device=model.device).view(-1, 1, 1)
        self.windows = native_windows(model.config)
        self.device = model.device
        self.slots = [SlotsLayer(setup.storage, self.device) for _ in range(self.layers)]
        self.cache = slots_cache(self.slots)
        context = PlanContext(self.layers, prompt_tokens, self.device, setup.storage)
        self.plan: Plan | None = None
        self.walks: list[Walk] = []
        if setup.policy.reads_attention:
            windows = enumerate(self.windows)
            self.walks = [Walk(setup.policy, layer, window, self.kv_heads, context) for layer, window in windows]
        else:
            self.plan = Plan(setup.policy, self.windows, self.kv_heads, context)
        self.walked: dict[int, BlockPlan] = {}
        self.ropes = ropes_of(model) if setup.positions == "slot" else []
        self.lifetimes = History(self.layers, self.kv_heads, self.device)
        is_coded = isinstance(setup.storage, Quantised)
        self.coded = [History(self.layers, self.kv_heads, self.device) for _ in range(2 if is_coded else 0)]
        self.fed = 0
        self.on_layer: Callable[[int], None] | None = None  # told of every layer of every block; may raise to stop
        self.sights: dict[int, Sight] = {}
        self.learned_positions = learned_positions(model)

    @property
    def softmax(self) -> str:
        return self.setup.softmax

    def feed(self, token_ids: Sequence[int] | Tensor, *, last_only: bool = False) -> Tensor:
        """Logits (R, vocabulary) of a block of R tokens, or (1, vocabulary) of its last one."""
        ids = torch.as_tensor(token_ids, device=self.device).view(1, -1)
        start, rows = self.fed, ids.shape[1]
        self.refuse_beyond_learned(start + rows)
        if self.plan is not None:
            self.plan.advance(start, rows)
        self.sights, self.walked = {}, {}
        self.queries = torch.arange(start, start + rows, device=self.device)
        use_kvviz_attention(self.model)
        token = attention.active_run.set(self)
        try:
            with torch.inference_mode():
                output = self.model(
                    input_ids=ids,
                    position_ids=self.queries[None],
                    cache=self.cache,
                    use_cache=True,
                    logits_to_keep=1 if last_only else 0,
                )
        finally:
            attention.active_run.reset(token)
        self.fed += rows
        self.note_lifetimes(rows)
        return output.logits[0]

    def refuse_beyond_learned(self, tokens: int) -> None:
        """A model that learned its positions has none beyond the last; a rotary one only leaves its trained range."""
        if self.learned_positions is not None and tokens > self.learned_positions:
            raise ValueError(
                f"{tokens} tokens are more than the {self.learned_positions} positions this "
                f"{self.model.config.model_type} model learned; use a shorter text."
            )

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, rule: Rule, window: int | None) -> Tensor:
        """One layer's attention for the current block, (1, R, A, D); afterwards the layer's slots have shrunk."""
        assert window == self.windows[layer], f"layer {layer} asks for window {window}, not {self.windows[layer]}"
        if self.on_layer is not None:
            self.on_layer(layer)
        if self.recorder is not None:
            rows = len(self.queries)
            self.recorder.enter(layer, key[0, :, -rows:], value[0, :, -rows:], self.queries)
        slots = self.slots[layer]
        if self.walks:
            return self.walk(layer, query, key, value, rule)
        sight = self.sight(layer)
        if sight.shrink_first is not None:
            slots.retain(sight.shrink_first)
            key, value = gather_slots(key, sight.shrink_first), gather_slots(value, sight.shrink_first)
        mixed = self.mix(layer, query, key, value, rule, sight)
        slots.settle(sight.coding)
        if sight.shrink_after is not None:
            slots.retain(sight.shrink_after)
        return mixed

    def walk(self, layer: int, query: Tensor, key: Tensor, value: Tensor, rule: Rule) -> Tensor:
        """Attention and eviction row by row, for a policy that reads attention."""
        block = Rows(self, layer, query, key, rule)
        start, rows = int(self.queries[0]), len(self.queries)
        plan = self.walks[layer].block(start, rows, block.weigh, block.weights, block.recode)
        self.walked[layer] = plan
        if self.recorder is not None:
            visible = Sight(plan.kept_whole(), self.queries, self.setup, layer, self.heads).visible
            self.recorder.record(layer, block.weights.flatten(0, 1), plan.positions, visible, self.queries)
        self.slots[layer].settle(plan.coding)
        if plan.survivors is not None:
            self.slots[layer].retain(plan.survivors)
        return self.combine(block.weights, value, plan.coding)

    def sight(self, layer: int) -> Sight:
        """What the rows of this block see in a layer; computed once for layers that are all alike."""
        assert self.plan is not None
        group, index = self.plan.place[layer]
        block = self.plan.blocks[group]
        key = group if len(block.positions) == 1 and self.setup.pattern.is_alike else -1 - layer
        if key not in self.sights:
            self.sights[key] = Sight(block.layer(index), self.queries, self.setup, layer, self.heads)
        return self.sights[key]

    def mix(self, layer: int, query: Tensor, key: Tensor, value: Tensor, rule: Rule, sight: Sight) -> Tensor:
        shift = sight.shift if self.setup.positions == "slot" else None
        is_exact = sight.coding is None or sight.coding.is_idle
        if shift is None and self.recorder is None and rule.is_plain and is_exact:
            return attention.fused(query, key, value, sight.mask, rule, sight.is_causal)
        raw = self.raw(layer, query, key, rule, shift)
        if sight.coding is not None and len(sight.coding.heads):
            coded = self.raw(layer, query, sight.coding.keys(key), rule, shift)
            raw = torch.where((self.queries[:, None] > sight.coding.key_at[:, None])[:, None], coded, raw)
        weights = attention.weights_of(raw, sight.visible, rule)
        if self.recorder is not None:
            heads = sight.positions.expand(self.kv_heads, -1)
            self.recorder.record(layer, weights.flatten(0, 1), heads, sight.visible, self.queries)
        return self.combine(weights, value, sight.coding)

    def raw(self, layer: int, query: Tensor, key: Tensor, rule: Rule, shift: Tensor | None) -> Tensor:
        """Scores before any mask, with the keys where they were or moved towards their query."""
        if shift is None:
            return attention.scores(query, key, rule)
        return attention.slot_scores(query, key, rule, shift, self.ropes[layer])

    def combine(self, weights: Tensor, value: Tensor, coding: Coding | None) -> Tensor:
        """Weighted values, of which each row sees those coded that were coded before it."""
        if coding is None or not bool(coding.new_values.any()):
            return attention.combine(weights, value)
        is_later = (self.queries[:, None] > coding.value_at[:, None])[:, None]
        exact = attention.combine(weights.masked_fill(is_later, 0), value)
        return exact + attention.combine(weights.masked_fill(~is_later, 0), coding.values(value))

    def note_lifetimes(self, rows: int) -> None:
        """Write down who left in this block, and what was coded."""
        for history in (self.lifetimes, *self.coded):
            history.grow(self.fed, rows)
        if self.plan is not None:
            for group, block in zip(self.plan.groups, self.plan.blocks, strict=True):
                self.note(group.layers, block)
        for layer, block in self.walked.items():
            self.note([layer], block)

    def note(self, layers: list[int], block: BlockPlan) -> None:
        if block.survivors is not None or block.gone_at is not None:
            self.lifetimes.note(layers, block.positions, block.leaves_at if block.gone_at is None else block.gone_at)
        for place, coding in enumerate(block.codings):
            mine = layers if len(block.codings) == 1 else layers[place : place + 1]
            positions = block.positions[place] if block.positions.ndim > 2 else block.positions
            for history, at in zip(self.coded, (coding.key_at, coding.value_at), strict=True):
                history.note(mine, positions, at)

    def evicted_at(self) -> Tensor:
        """(L, H, T): the first step that cannot see each token; T for those still there."""
        return self.lifetimes.until(self.fed)

    def coded_at(self) -> list[Tensor]:
        """Of keys and of values, (L, H, T): the step after which each was coded, T if never; empty if none can be."""
        return [history.until(self.fed) for history in self.coded]

    def notes(self) -> list[str]:
        """Sentences about this run that a reader of its numbers must know."""
        notes = storage_notes(self.setup.storage, [layer.store for layer in self.slots])
        trained = getattr(self.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        if trained is not None and self.fed > trained:
            notes.append(f"The text has {self.fed} tokens; the model was trained on positions up to {trained} only.")
        return notes

    @property
    def cache_bytes(self) -> int:
        """Bytes of all key and value tensors held now."""
        return sum(layer.nbytes for layer in self.slots)

    @property
    def widths(self) -> Widths:
        """What one entry of one layer and KV head holds."""
        return self.slots[0].widths


def use_kvviz_attention(model: PreTrainedModel) -> None:
    """Route the model's attention through kvviz; harmless outside a run, where it is stock sdpa."""
    if model.config._attn_implementation != attention.NAME:
        model.set_attn_implementation(attention.NAME)


def learned_positions(model: PreTrainedModel) -> int | None:
    """How many positions a model with learned ones (GPT-2, OPT) knows; None for the others."""
    has_table = any(name.endswith(("wpe", "embed_positions")) for name, _ in model.named_modules())
    return model.config.get_text_config(decoder=True).max_position_embeddings if has_table else None

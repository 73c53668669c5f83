"""The one engine: blocks of query rows meet the slots carried from before.

Teacher forcing needs no stepping: within a layer the keys and values of a token do not depend on what is evicted
later, so a block of rows is computed at once, every row seeing exactly the slots it would have seen had the tokens
come one at a time. After the block the slots really shrink. ``replay`` feeds large blocks, ``generate`` blocks of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz import attention
from kvviz.attention import Rule
from kvviz.cache import SlotsLayer, native_windows, slots_cache
from kvviz.experiment import Setup
from kvviz.plan import STILL_THERE, BlockPlan, Plan, PlanContext
from kvviz.rope import ropes_of
from kvviz.sight import Rows, Sight
from kvviz.walk import Walk


class Recorder(Protocol):
    """Whoever measures the attention weights as they pass."""

    def record(self, layer: int, weights: Tensor, positions: Tensor, visible: Tensor, queries: Tensor) -> None:
        """Weights (A, R, K), positions (H, K), visible (H or 1, R, K) bool, query positions (R,)."""


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
        self.slots = [SlotsLayer() for _ in range(self.layers)]
        self.cache = slots_cache(self.slots)
        context = PlanContext(self.layers, prompt_tokens, self.device)
        self.plan: Plan | None = None
        self.walks: list[Walk] = []
        if setup.policy.reads_attention:
            windows = enumerate(self.windows)
            self.walks = [Walk(setup.policy, layer, window, self.kv_heads, context) for layer, window in windows]
        else:
            self.plan = Plan(setup.policy, self.windows, self.kv_heads, context)
        self.walked: dict[int, BlockPlan] = {}
        self.ropes = ropes_of(model) if setup.positions == "slot" else []
        self.lifetimes = torch.empty(self.layers, self.kv_heads, 0, dtype=torch.long, device=self.device)
        self.fed = 0
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
        slots = self.slots[layer]
        if self.walks:
            return self.walk(layer, query, key, value, rule)
        sight = self.sight(layer)
        if sight.shrink_first is not None:
            key, value = slots.retain(sight.shrink_first)
        mixed = self.mix(layer, query, key, value, rule, sight)
        if sight.shrink_after is not None:
            slots.retain(sight.shrink_after)
        return mixed

    def walk(self, layer: int, query: Tensor, key: Tensor, value: Tensor, rule: Rule) -> Tensor:
        """Attention and eviction row by row, for a policy that reads attention."""
        block = Rows(self, layer, query, key, rule)
        plan = self.walks[layer].block(int(self.queries[0]), len(self.queries), block.weigh, block.weights)
        self.walked[layer] = plan
        if self.recorder is not None:
            visible = Sight(plan.kept_whole(), self.queries, self.setup, layer, self.heads).visible
            self.recorder.record(layer, block.weights.flatten(0, 1), plan.positions, visible, self.queries)
        if plan.survivors is not None:
            self.slots[layer].retain(plan.survivors)
        return attention.combine(block.weights, value)

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
        if shift is None and self.recorder is None and rule.is_plain:
            return attention.fused(query, key, value, sight.mask, rule, sight.is_causal)
        raw = (
            attention.scores(query, key, rule)
            if shift is None
            else attention.slot_scores(query, key, rule, shift, self.ropes[layer])
        )
        weights = attention.weights_of(raw, sight.visible, rule)
        if self.recorder is not None:
            heads = sight.positions.expand(self.kv_heads, -1)
            self.recorder.record(layer, weights.flatten(0, 1), heads, sight.visible, self.queries)
        return attention.combine(weights, value)

    def note_lifetimes(self, rows: int) -> None:
        """Write down who left in this block."""
        if self.fed > self.lifetimes.shape[-1]:  # grown by many tokens at once, or stepping would copy it every time
            spare = self.lifetimes.new_full((self.layers, self.kv_heads, max(rows, 1024)), STILL_THERE)
            self.lifetimes = torch.cat([self.lifetimes, spare], dim=-1)
        if self.plan is not None:
            for group, block in zip(self.plan.groups, self.plan.blocks, strict=True):
                self.note(group.layers, block)
        for layer, block in self.walked.items():
            self.note([layer], block)

    def note(self, layers: list[int], block: BlockPlan) -> None:
        gone_at = block.leaves_at if block.gone_at is None else block.gone_at
        if block.survivors is None and block.gone_at is None:
            return
        shape = (len(layers), self.kv_heads, block.positions.shape[-1])
        part, places = self.lifetimes[layers], block.positions.expand(shape)
        # a slot may outlive its token: what was written in an earlier block stands
        part.scatter_(-1, places, torch.minimum(part.gather(-1, places), gone_at.expand(shape)))
        self.lifetimes[layers] = part

    def evicted_at(self) -> Tensor:
        """(L, H, T): the first step that cannot see each token; T for those still there."""
        return self.lifetimes[..., : self.fed].clamp(max=self.fed)

    def notes(self) -> list[str]:
        """Sentences about this run that a reader of its numbers must know."""
        trained = getattr(self.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        if trained is None or self.fed <= trained:
            return []
        return [f"The text has {self.fed} tokens; the model was trained on positions up to {trained} only."]

    @property
    def cache_bytes(self) -> int:
        """Bytes of all key and value tensors held now."""
        return sum(layer.nbytes for layer in self.slots)

    @property
    def bytes_per_entry(self) -> int:
        """Key and value payload of one token in one layer and KV head."""
        first = self.slots[0]
        return (first.keys.shape[-1] + first.values.shape[-1]) * first.keys.element_size()


def kv_heads_of(config: Any) -> int:
    """KV heads of a config; those without the field give every query head its own."""
    return getattr(config, "num_key_value_heads", None) or config.num_attention_heads


def use_kvviz_attention(model: PreTrainedModel) -> None:
    """Route the model's attention through kvviz; harmless outside a run, where it is stock sdpa."""
    if model.config._attn_implementation != attention.NAME:
        model.set_attn_implementation(attention.NAME)


def learned_positions(model: PreTrainedModel) -> int | None:
    """How many positions a model with learned ones (GPT-2, OPT) knows; None for the others."""
    has_table = any(name.endswith(("wpe", "embed_positions")) for name, _ in model.named_modules())
    return model.config.get_text_config(decoder=True).max_position_embeddings if has_table else None

"""The one attention function that kvviz registers with transformers, and its arithmetic.

Inside an active run it builds its own visibility from the positions that the slots hold, never from the shared mask:
layers may hold different tokens. With no active run it is the stock sdpa attention.

Letters: A query heads, H KV heads, G = A / H query heads of a group, R rows (queries), K slots, D head size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from kvviz.models.rope import Rope

NAME = "kvviz"


@dataclass(frozen=True)
class Rule:
    """How one layer turns scores into weights, as its model asks for it."""

    scaling: float
    softmax: str = "standard"  # or "off_by_one"
    softcap: float | None = None  # Gemma 2: scores are squashed to ±softcap
    sink_logits: Tensor | None = None  # (A,) gpt-oss: a learned extra logit that takes weight, gives nothing

    @property
    def is_plain(self) -> bool:
        return self.softmax == "standard" and self.softcap is None and self.sink_logits is None


class ActiveRun(Protocol):
    """What the attention function needs of a run (``engine.Pass`` is the one that exists)."""

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, rule: Rule, window: int | None
    ) -> Tensor: ...

    @property
    def softmax(self) -> str: ...


# A ContextVar, so that two users' runs in two threads cannot mix.
active_run: ContextVar[ActiveRun | None] = ContextVar("active_run", default=None)


@contextmanager
def routed(model: PreTrainedModel, run: ActiveRun) -> Iterator[None]:
    """Inside, the model's attention goes through ``run``; routing is harmless outside a run, where it is stock sdpa."""
    if model.config._attn_implementation != NAME:
        model.set_attn_implementation(NAME)
    token = active_run.set(run)
    try:
        yield
    finally:
        active_run.reset(token)


def kvviz_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, Tensor | None]:
    """Query (1, A, R, D), key and value (1, H, K, D) → output (1, R, A, D)."""
    run = active_run.get()
    if run is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    if query.shape[0] != 1:
        raise ValueError(f"kvviz runs one text at a time; this batch has {query.shape[0]}.")
    if kwargs.get("position_bias") is not None:
        raise ValueError(f"{type(module).__name__} adds a position bias, which kvviz does not know.")
    if attention_mask is not None and attention_mask.data_ptr() != no_mask(attention_mask.device).data_ptr():
        raise ValueError(f"{type(module).__name__} hides some keys by a rule of its own, which kvviz does not know.")
    scaling = kwargs.get("scaling")
    rule = Rule(
        scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
        softmax=run.softmax,
        softcap=kwargs.get("softcap"),
        sink_logits=kwargs.get("s_aux"),
    )
    window = kwargs.get("sliding_window")
    return run.attend(module.layer_idx, query, key, value, rule, window), None  # type: ignore[arg-type]


@cache
def no_mask(device: torch.device | str) -> Tensor:
    """What hides nothing, (1, 1, 1, 1) bool; always the same memory on one device."""
    return torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)


def kvviz_mask(batch_size: int, q_length: int, kv_length: int, *args: Any, **kwargs: Any) -> Tensor | None:
    """A mask that hides nothing inside a run (the attention function makes its own); sdpa's mask otherwise.

    A mask function must be registered beside the attention function, or transformers drops causality silently. A model
    that combines what it gets with a mask of its own hands over other memory, which tells it.
    """
    if active_run.get() is not None:
        return no_mask(torch.device(kwargs.get("device", "cpu"))).expand(batch_size, 1, q_length, kv_length)
    return sdpa_mask(batch_size, q_length, kv_length, *args, **kwargs)


AttentionInterface.register(NAME, kvviz_attention)
AttentionMaskInterface.register(NAME, kvviz_mask)


def grouped(query: Tensor, heads: int) -> Tensor:
    """(1, A, R, D) → (H, G·R, D): the query heads that share a KV head lie one after another."""
    _, query_heads, rows, size = query.shape
    if query_heads % heads:
        raise ValueError(f"{query_heads} query heads cannot share {heads} KV heads evenly.")
    return query[0].reshape(heads, query_heads // heads * rows, size)


def scores(query: Tensor, key: Tensor, rule: Rule) -> Tensor:
    """Scaled dot products, (1, A, R, D) × (1, H, K, D) → (H, G, R, K), before any mask or cap."""
    heads, rows = key.shape[1], query.shape[2]
    products = torch.bmm(grouped(query, heads), key[0].transpose(1, 2)) * rule.scaling
    return products.view(heads, -1, rows, key.shape[2])


def slot_scores(query: Tensor, key: Tensor, rule: Rule, shift: Tensor, rope: Rope) -> Tensor:
    """Scores with every key moved ``shift`` (H or 1, R, K) positions towards its query, (H, G, R, K).

    Only relative distance matters, so keys that lie as near as they always did need no rotation: for sinks and a
    window just the sinks move. Works in rows at a time, so that the moved copies stay small.
    """
    result = scores(query, key, rule)
    heads, group, rows, _ = result.shape
    columns = (shift != 0).flatten(0, 1).any(0).nonzero()[:, 0]
    if not len(columns):
        return result
    grouped_query = query[0].view(heads, group, rows, -1)
    picked, moves = key[0][:, None, columns], shift[:, :, columns]
    step = max(1, 2**22 // (heads * len(columns) * key.shape[-1]))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        moved = rope.moved(picked, moves[:, part].expand(heads, -1, -1))  # (H, r, C, D)
        products = torch.einsum("hgrd,hrcd->hgrc", grouped_query[:, :, part].to(moved.dtype), moved)
        result[:, :, part, columns] = (products * rule.scaling).to(result.dtype)
    return result


def weights_of(scores: Tensor, visible: Tensor | None, rule: Rule) -> Tensor:
    """Attention weights (H, G, R, K) from scores, in at least float32; hidden slots get exactly 0.

    standard: w_j = e^{x_j} / Σ e^{x_i}. off_by_one: w_j = e^{x_j} / (1 + Σ e^{x_i}), as if one more key with score 0
    and value 0 stood there (Miller, Attention Is Off By One, 2023).
    """
    x = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if rule.softcap is not None:
        x = torch.tanh(x / rule.softcap) * rule.softcap
    if visible is not None:
        # the same as filling, but on a CPU several times faster, and its gradient costs nothing
        x = x + torch.where(visible, 0.0, -torch.inf)[:, None]
    extra = extra_logits(x, rule)
    if not extra:
        return x.softmax(-1)
    total = torch.cat([x.logsumexp(-1, keepdim=True), *extra], dim=-1).logsumexp(-1, keepdim=True)
    return (x - total).exp()


def extra_logits(x: Tensor, rule: Rule) -> list[Tensor]:
    """Logits that stand in the denominator only, each (H, G, R, 1)."""
    extra = []
    if rule.softmax == "off_by_one":
        extra.append(torch.zeros_like(x[..., :1]))
    if rule.sink_logits is not None:
        extra.append(rule.sink_logits.to(x.dtype).view(*x.shape[:2], 1, 1).expand(*x.shape[:3], 1))
    return extra


def combine(weights: Tensor, value: Tensor) -> Tensor:
    """Weighted values: (H, G, R, K) × (1, H, K, D) → (1, R, A, D)."""
    heads, group, rows, slots = weights.shape
    mixed = torch.bmm(weights.to(value.dtype).view(heads, group * rows, slots), value[0])
    return mixed.view(1, heads * group, rows, -1).transpose(1, 2).contiguous()


def fused(query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None, rule: Rule, is_causal: bool) -> Tensor:
    """The same result through torch's fused kernel, which never forms the weights; (1, R, A, D)."""
    heads, rows = key.shape[1], query.shape[2]
    group = query.shape[1] // heads
    mask = None if visible is None else shared_mask(visible, 1 if rows == 1 else group)
    if rows == 1:  # fold the group into the rows: no copy of keys or values is made
        query = query.view(1, heads, group, -1)
    elif group > 1:
        key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    mixed = F.scaled_dot_product_attention(query, key, value, mask, scale=rule.scaling, is_causal=is_causal)
    return mixed.reshape(1, heads * group, rows, -1).transpose(1, 2).contiguous()


def shared_mask(visible: Tensor, group: int) -> Tensor:
    """(H, R, K) as the fused kernel takes it, (1, H·group or 1, R, K): one mask for all heads stays one."""
    if len(visible) == 1 or visible.stride(0) == 0:  # expanded from one
        return visible[None, :1]
    return visible.repeat_interleave(group, 0)[None] if group > 1 else visible[None]

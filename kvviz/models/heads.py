"""Query heads and the KV heads they read."""

from __future__ import annotations

from typing import Any


def group_of(query_heads: int, kv_heads: int) -> int:
    """How many query heads share one KV head; ValueError where they cannot share evenly."""
    if kv_heads < 1 or query_heads % kv_heads:
        raise ValueError(f"{query_heads} query heads cannot share {kv_heads} KV heads evenly.")
    return query_heads // kv_heads


def kv_head_of(query_head: int, query_heads: int, kv_heads: int) -> int:
    """The KV head that a query head reads: they share in order, the first group the first."""
    return query_head // group_of(query_heads, kv_heads)


def kv_heads_of(config: Any) -> int:
    """KV heads of a config; those without the field give every query head its own. ValueError where it has no heads."""
    heads = getattr(config, "num_key_value_heads", None) or getattr(config, "num_attention_heads", None)
    if not heads:
        raise ValueError(
            f"{config.model_type} models are refused: their config names no attention heads, so their layers keep a "
            "state instead of keys and values; choose a model with attention in every layer."
        )
    return int(heads)

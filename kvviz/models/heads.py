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
    """KV heads of a config; those without the field give every query head its own."""
    return getattr(config, "num_key_value_heads", None) or config.num_attention_heads

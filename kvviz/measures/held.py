"""How many bytes a quantised cache holds after each step, from the lifetimes of its entries alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvviz.choices.storage import Quantised, Widths

Ints = NDArray[Any]


def quantised_bytes_at(
    storage: Quantised, widths: Widths, evicted_at: Ints, key_coded_at: Ints, value_coded_at: Ints
) -> Ints:
    """Bytes after each step, (T,); all three arrays are (L, H, T) steps, T = still there, or never coded.

    exact keys · their bytes + key blocks that hold a living entry · theirs + exact values + coded values. Coded keys of
    a head lie in position order, so every ``group`` of them is one block, which lives as long as any of them.
    """
    tokens = evicted_at.shape[-1]
    begin = np.broadcast_to(np.arange(tokens), evicted_at.shape)

    def held(since: Ints, until: Ints) -> Ints:
        return counts(np.minimum(since, until), until, tokens)

    exact_keys = held(begin, np.minimum(key_coded_at, evicted_at))
    exact_values = held(begin, np.minimum(value_coded_at, evicted_at))
    coded_values = held(value_coded_at, evicted_at)
    is_coded = key_coded_at < tokens
    since = key_coded_at[is_coded].reshape(-1, storage.group)[:, 0]
    until = evicted_at[is_coded].reshape(-1, storage.group).max(axis=1)
    blocks = held(since, until)
    return (
        exact_keys * widths.key_bytes
        + blocks * storage.key_block_bytes(widths)
        + exact_values * widths.value_bytes
        + coded_values * storage.value_bytes(widths)
    )


def counts(since: Ints, until: Ints, tokens: int) -> Ints:
    """How many of the spans [since, until) hold each of the steps 0 … tokens − 1."""
    starts = np.bincount(since.ravel(), minlength=tokens + 1)[:tokens]
    ends = np.bincount(until.ravel(), minlength=tokens + 1)[:tokens]
    return np.cumsum(starts - ends)

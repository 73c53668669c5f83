"""How far two queries, or two heads, agree on which keys matter: the share of their k strongest keys in common."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def strongest(weights: Floats, count: int) -> NDArray[np.bool_]:
    """The ``count`` largest weights of each row, (…, T) → (…, T); NaN never is one; of equal ones the older counts."""
    known = np.where(np.isfinite(weights), weights, -np.inf)
    order = np.argsort(-known, axis=-1, kind="stable")[..., :count]
    chosen = np.zeros(weights.shape, dtype=bool)
    np.put_along_axis(chosen, order, True, axis=-1)
    return chosen & np.isfinite(weights)


def overlap_with_previous(weights: Floats, count: int) -> Floats:
    """|top_k(t) ∩ top_k(t − 1)| / min(k, keys that t − 1 saw) for every query of a map (Q, T); NaN for the first.

    1 means that what one query looked at most is what the next one does; a score from one query alone would do then.
    """
    chosen = strongest(weights, count)
    common = (chosen[1:] & chosen[:-1]).sum(-1)
    possible = chosen[:-1].sum(-1)
    share = np.divide(common, possible, out=np.full(len(common), np.nan), where=possible > 0)
    return np.concatenate([[np.nan], share])


def overlap_of_heads(rows: Floats, count: int) -> Floats:
    """The same between heads for one query: rows (A, T) → (A, A) shares, 1 on the diagonal."""
    chosen = strongest(rows, count).astype(np.int64)
    sizes = chosen.sum(-1)
    possible = np.minimum(sizes[:, None], sizes[None])
    return np.divide(chosen @ chosen.T, possible, out=np.full(possible.shape, np.nan), where=possible > 0)


def mean_map(maps: list[Floats]) -> Floats:
    """The mean of several heads' maps (Q, T): what a head cannot see counts as 0 there, NaN only where no head sees."""
    stack = np.stack(maps)
    seen = np.isfinite(stack)
    return np.where(seen.any(0), np.where(seen, stack, 0).mean(0), np.nan).astype(np.float32)


def overlap_of_kept(evicted_at: NDArray[np.integer]) -> Floats:
    """What two KV heads of a layer both hold at the end, as a share of what each holds, over all pairs, (L,).

    ``evicted_at`` (L, H, T) as in a trace, where T means still held; NaN with one KV head, which has no other.
    """
    layers, heads, tokens = evicted_at.shape
    held = (evicted_at >= tokens).astype(np.int64)
    if heads == 1:
        return np.full(layers, np.nan)
    common = held @ held.transpose(0, 2, 1)  # (L, H, H)
    sizes = held.sum(-1)
    possible = np.minimum(sizes[:, :, None], sizes[:, None])
    is_pair = ~np.eye(heads, dtype=bool)
    share: Floats = common[:, is_pair].sum(-1) / possible[:, is_pair].sum(-1)
    return share

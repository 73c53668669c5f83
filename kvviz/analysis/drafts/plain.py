"""Plain greedy decoding, which speculation is compared with: its tokens, its logits and its cache."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.cache.stores import NativeStore
from kvviz.choices.setup import Setup
from kvviz.run.engine import Pass
from kvviz.run.progress import Watch
from kvviz.run.reading import Reading
from kvviz.run.replay import BLOCK


@dataclass(frozen=True, eq=False)
class Plain:
    """Plain greedy decoding: the new tokens, their rows of logits, and the cache at the end."""

    token_ids: tuple[int, ...]
    logits: Tensor  # (n, vocabulary)
    run: Pass


def decoded(model: PreTrainedModel, ids: Tensor, count: int, stop_at: Collection[int], watch: Watch) -> Plain:
    """Plain greedy decoding with the full cache, a token a step."""
    run = Pass(model, Setup(), prompt_tokens=len(ids))
    for part in ids.split(BLOCK):
        logits = run.feed(part, last_only=True)
    rows, chosen = [logits[-1]], [int(logits[-1].argmax())]
    while len(chosen) < count and chosen[-1] not in stop_at:
        watch.tell(0.5 * len(chosen) / count)
        rows.append(run.feed(chosen[-1:])[-1])
        chosen.append(int(rows[-1].argmax()))
    return Plain(tuple(chosen), torch.stack(rows), run)


def agreeing(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def margin_at(plain: Plain, found: Sequence[int]) -> float | None:
    """How close plain decoding's choice was where the two part; None if they do not."""
    shared = agreeing(plain.token_ids, found)
    if tuple(found) == plain.token_ids or shared >= len(plain.logits):
        return None
    first, second = plain.logits[shared].float().log_softmax(-1).topk(2).values.tolist()
    return float(first - second)


def cache_gap(reading: Reading, run: Pass, count: int) -> float:
    """The largest difference between two caches over the first ``count`` tokens, as a share of the largest number.

    A run lets go of what a window of the model's own has left behind; a reading only hides it.
    """
    gaps = [0.0]
    for mine, layer in zip(reading.entries(), run.slots, strict=True):
        assert isinstance(layer.store, NativeStore) and layer.store.entries is not None
        for one, other in zip(mine, layer.store.entries, strict=True):
            first = run.fed - other.shape[2]
            if first < count:
                difference = one[:, :, first:count] - other[:, :, : count - first]
                gaps.append(float(difference.abs().max() / other.abs().max()))
    return max(gaps)

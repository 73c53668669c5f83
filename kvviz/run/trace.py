"""The record of one run: frozen, numpy, read-only. Pages, measures and figures read it; nothing writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from kvviz.choices.setup import Setup
from kvviz.choices.storage import Widths
from kvviz.measures.sinks import SINKS

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Trace:
    """What one run of a model over T tokens did. L layers, A query heads, H KV heads, Q = T queries, D head size.

    An evicted token never returns, so the whole history of the cache is one array of lifetimes: position j is in
    the cache after step t exactly when ``j <= t < evicted_at[l, h, j]``.
    """

    kind: str  # "replayed" (the text was given) or "generated" (the model chose the tokens after the prompt)
    setup: Setup
    token_ids: Ints  # (T,) the processed tokens
    prompt_tokens: int
    evicted_at: Ints  # (L, H, T): the first step that cannot see the token; T if it is still there
    nll: Floats  # (T − 1,) nats: nll[i] = −log p(token i+1 | tokens 0…i)
    freed_at: Ints  # (L, H, T): the same for the memory it takes, which a model's own window may free later
    stored: tuple[tuple[int, Widths], ...]  # of each layer: heads with entries of their own, and what one entry holds
    cache_bytes: int  # K and V payload at the end, scales of quantised entries included
    seconds: float  # wall time of the pass
    query_heads: int
    is_likeliest: NDArray[np.bool_] | None = None  # (T − 1,) replayed only: token i+1 was the likeliest after 0…i
    sink_tokens: int = SINKS  # how many first positions the sink mass counts
    measures: Mapping[str, Floats] = field(default_factory=dict)  # by name, see ``measures.attention``: (L, A, Q) each
    first_weights: Floats | None = None  # (L, A, Q, 8) weight on each of the first 8 positions
    key_norm: Floats | None = None  # (L, H, T) length of each key when it entered
    value_norm: Floats | None = None  # (L, H, T)
    received: Floats | None = None  # (L, A, T) attention each key got from all queries together
    maps: Mapping[tuple[int, int], Floats] = field(default_factory=dict)  # (layer, query head) → (Q, T), NaN = not seen
    chosen: Ints | None = None  # generated only: the new tokens; the last one was chosen but not processed
    prefill_seconds: float | None = None  # generated only: time to read the prompt
    ttft_seconds: float | None = None  # generated only: time to the first new token
    tokens_per_second: float | None = None  # generated only: after the first new token
    quantised_at: tuple[Ints, Ints] | None = None  # of keys, of values, (L, H, T): the step after which; T = never
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for item in fields(self):
            freeze(getattr(self, item.name))
        for array in (*self.maps.values(), *self.measures.values(), *(self.quantised_at or ())):
            freeze(array)

    def __setstate__(self, state: Mapping[str, object]) -> None:
        """A trace read back from disk is as read-only as it was."""
        vars(self).update(state)
        self.__post_init__()

    @property
    def tokens(self) -> int:
        return len(self.token_ids)

    @property
    def layers(self) -> int:
        return self.evicted_at.shape[0]

    @property
    def kv_heads(self) -> int:
        return self.evicted_at.shape[1]

    def kept(self, layer: int, head: int, step: int) -> Ints:
        """Positions in the cache of that layer and KV head after the step, ascending."""
        lifetimes = self.evicted_at[layer, head, : step + 1]
        return np.flatnonzero(lifetimes > step)

    def entries(self) -> Ints:
        """How many tokens each layer and KV head holds after each step, (L, H, T)."""
        ends = np.apply_along_axis(np.bincount, -1, self.evicted_at, minlength=self.tokens + 1)
        return np.arange(1, self.tokens + 1) - np.cumsum(ends[..., : self.tokens], axis=-1)

    def bytes_at(self) -> Ints:
        """Payload bytes of the whole cache after each step, (T,), by the formula of its storage."""
        if self.setup.policy.recomputes:
            return np.zeros(self.tokens, dtype=np.int64)
        steps = [None] * self.layers if self.quantised_at is None else list(zip(*self.quantised_at, strict=True))
        storage, layers = self.setup.storage, zip(self.stored, self.freed_at, steps, strict=True)
        held = [storage.bytes_at(widths, ends[:heads], coded) for (heads, widths), ends, coded in layers]
        return np.sum(held, axis=0)


def freeze(value: object) -> None:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False

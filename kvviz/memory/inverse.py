"""The question the other way round: how many tokens, or sequences, fit into a memory beside the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kvviz.memory.account import Ask, account, bytes_of
from kvviz.memory.shape import NUMBER_BYTES, Shape

ENDLESS = 10**12  # a cache that still fits at so many tokens has stopped growing


def weight_bytes(shape: Shape) -> int:
    """Parameters × bytes of the model's own number format; 0 where the number of parameters is not known."""
    return (shape.parameters or 0) * NUMBER_BYTES[shape.dtype]


def fit_tokens(shape: Shape, ask: Ask, room_bytes: int) -> int | None:
    """The most tokens a sequence of this ask may have so that the cache fits at every length on the way.

    0 where not even one fits, None where no length is too long.
    """

    def fits(tokens: int) -> bool:
        return peak_bytes(shape, replace(ask, tokens=tokens)) <= room_bytes

    if not fits(1):
        return 0
    if fits(ENDLESS):
        return None
    return last_true(fits, 1, ENDLESS)


def last_true(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last number for which it holds, between one for which it does and one for which it does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def fit_sequences(shape: Shape, ask: Ask, room_bytes: int) -> int | None:
    """Sequences of ``ask.tokens`` tokens that fit together; None where they hold nothing at all."""
    one = peak_bytes(shape, replace(ask, batch=1))
    return max(0, room_bytes) // one if one else None


def peak_bytes(shape: Shape, ask: Ask) -> int:
    """The most bytes at any length up to this one."""
    kept = {part for group in shape.groups if group.kv_heads for part in ask.keeping(group, ask.tokens)}
    found = (ask.storage.fullest_lengths(ask.tokens, part.sinks, part.recent) for part in kept)
    return max(bytes_of(shape, replace(ask, tokens=tokens)) for tokens in {ask.tokens}.union(*found))


def growth_bytes(shape: Shape, ask: Ask) -> int:
    """What one more token adds at this length to each sequence together; negative where it lets a block be coded."""
    return account(shape, replace(ask, tokens=ask.tokens + 1)).bytes - account(shape, ask).bytes

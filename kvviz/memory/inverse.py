"""The question the other way round: how many tokens, or sequences, fit into a memory beside the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kvviz.memory.account import Ask, account, bytes_of
from kvviz.memory.shape import NUMBER_BYTES, Shape
from kvviz.storage import Quantised

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
    """The most bytes at any length up to this one. Only coding makes a cache shrink, and it recurs."""
    if not isinstance(ask.storage, Quantised):
        return bytes_of(shape, ask)
    return max(bytes_of(shape, replace(ask, tokens=tokens)) for tokens in turns(shape, ask, ask.storage))


def turns(shape: Shape, ask: Ask, storage: Quantised) -> set[int]:
    """This length and those shortly before at which a coded cache is largest.

    Bytes rise with exact keys and fall when ``residual`` of them are coded or the last entry of a block leaves. Between
    two codings the blocks leave at equal steps, so the largest of these is the first or the last one.
    """
    found = {ask.tokens}
    ends = [ask.tokens] + [ask.tokens - ask.tokens % storage.residual - 1 - k * storage.residual for k in (0, 1)]
    kept = {part.recent for group in shape.groups if group.kv_heads for part in ask.keeping(group, ask.tokens)}
    for end in ends:
        found |= {end, end - end % storage.residual}
        for recent in kept:
            last = end - (end - recent + 1) % storage.group
            first = end - end % storage.residual
            found |= {last, last - storage.group, first + (recent - 1 - first) % storage.group}
    return {tokens for tokens in found if 1 <= tokens <= ask.tokens}


def growth_bytes(shape: Shape, ask: Ask) -> int:
    """What one more token adds at this length to each sequence together; negative where it lets a block be coded."""
    return account(shape, replace(ask, tokens=ask.tokens + 1)).bytes - account(shape, ask).bytes

"""The question the other way round: how many tokens, or sequences, fit into a memory beside the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kvviz.choices.storage import Quantised
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
    """The most bytes at any length up to this one. Only coding makes a cache shrink, and it recurs."""
    if not isinstance(ask.storage, Quantised):
        return bytes_of(shape, ask)
    return max(bytes_of(shape, replace(ask, tokens=tokens)) for tokens in turns(shape, ask, ask.storage))


def turns(shape: Shape, ask: Ask, storage: Quantised) -> set[int]:
    """This length and the earlier ones at which a coded cache can be largest.

    Bytes rise with exact keys and fall when ``residual`` of them are coded or the last entry of a block leaves. Between
    two codings the blocks leave at equal steps, so the largest of these is the first or the last one. That recurs with
    every coding once entries are evicted; before, and while the first ones leave, it has to be looked at by itself.
    """
    found = {ask.tokens}
    for kept in {part for group in shape.groups if group.kv_heads for part in ask.keeping(group, ask.tokens)}:
        group, recent = storage.group, kept.recent
        full = recent + kept.sinks
        first_leaves = recent + (-(-kept.sinks // group) + 1) * group - 1
        for length in (ask.tokens, full, first_leaves, full + storage.residual, full + 2 * storage.residual):
            found |= {length} | before(length, storage, recent)
    return {tokens for tokens in found if 1 <= tokens <= ask.tokens}


def before(length: int, storage: Quantised, recent: int) -> set[int]:
    """Lengths up to this one just before keys are coded or a block leaves, in this period and the last two."""
    found, period = set(), length - length % storage.residual
    for end in (length, period - 1, period - 1 - storage.residual):
        start = end - end % storage.residual
        last = end - (end - recent + 1) % storage.group
        found |= {end, start, last, last - storage.group, start + (recent - 1 - start) % storage.group}
    return found


def growth_bytes(shape: Shape, ask: Ask) -> int:
    """What one more token adds at this length to each sequence together; negative where it lets a block be coded."""
    return account(shape, replace(ask, tokens=ask.tokens + 1)).bytes - account(shape, ask).bytes

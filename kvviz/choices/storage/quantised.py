"""Quantised storage: whole numbers of a few bits, with the scale and the minimum that bring them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kvviz.choices.storage.base import Storage, Stored, Terms, Widths, entered_at, held_at
from kvviz.knobs import knob

if TYPE_CHECKING:
    from kvviz.choices.storage.base import Ints


@dataclass(frozen=True)
class Quantised(Storage):
    """Whole numbers of b bits. Keys: per channel, in blocks of ``group`` consecutive kept entries of a head. Values:
    per token, in groups of ``group`` channels. code = round((x − min) / s), s = (max − min) / (2^b − 1).

    The latest entries stay exact. Keys: when a head holds ``residual`` exact ones after a step, all of them are coded
    at once. Values: the last ``residual`` are exact, an older one is coded after the step. Nothing is coded twice; an
    evicted entry leaves a hole in its block, which is freed with its last entry.

    Source: Liu et al., KIVI (2024). Departures: blocks count kept entries, for a policy may have evicted between them;
    steps decide when also inside the prompt, whose attention the authors leave exact; scale and minimum are held in the
    model's own number format (the authors' is fp16), so that constant groups come back exactly.
    """

    bits: ClassVar[int]
    is_exact = False
    needs_heads = True
    source = "Liu et al., KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache, 2024"
    group: int = knob(32, "entries or channels that share a scale", 1, 1024)
    residual: int = knob(32, "latest entries kept exact", 1, 8192)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.residual % self.group:
            near = max(1, round(self.residual / self.group)) * self.group
            raise ValueError(
                f"{self.name()}: residual={self.residual} must be a multiple of group={self.group}, because whole "
                f"blocks are coded; choose {near}."
            )

    def key_block_bytes(self, widths: Widths) -> int:
        """Codes of ``group`` keys, with a scale and a minimum for every channel."""
        return -(-self.group * widths.key * self.bits // 8) + 2 * widths.key_bytes

    def value_bytes(self, widths: Widths) -> int:
        """Codes of one value, with a scale and a minimum for every group of channels."""
        return -(-widths.value * self.bits // 8) + 2 * -(-widths.value // self.group) * widths.item_bytes

    def head_terms(self, widths: Widths, seen: int, sinks: int, recent: int) -> Terms:
        """Exact keys, quantised blocks of keys, exact values, quantised values.

        A block whose entries were partly evicted counts whole.
        """
        held = min(seen, sinks + recent)
        exact_keys, blocks = self.key_counts(seen, sinks, recent)
        exact_values = min(held, self.residual)
        keys = [(exact_keys, widths.key_bytes), (blocks, self.key_block_bytes(widths))]
        return [*keys, (exact_values, widths.value_bytes), (held - exact_values, self.value_bytes(widths))]

    def key_counts(self, seen: int, sinks: int, recent: int) -> tuple[int, int]:
        """How many keys are still exact, and how many quantised blocks still hold a living entry."""
        residual, group = self.residual, self.group
        # where fewer than ``residual`` recent tokens stay, exact ones are evicted before they are enough for a block
        reached = seen if recent >= residual else min(seen, sinks + recent)
        coded = reached - reached % residual
        oldest = max(seen - recent, min(sinks, seen))  # the first held token that is no sink
        living_sinks = -(-min(sinks, coded) // group)
        first_block = max(living_sinks, min(oldest, coded) // group)
        held = min(seen, sinks + recent)
        return held - min(sinks, coded) - max(0, coded - oldest), living_sinks + coded // group - first_block

    def notes(self, stored: Stored) -> list[str]:
        """Where nothing was quantised at all, and where the scales themselves are coarse."""
        if not stored.has_codes:
            return [
                f"{self.name()} changed nothing here: the latest {self.residual} entries of a head stay exact, and no "
                f"head ever held more than {stored.most_held}. Choose a smaller residual, a larger budget or a longer "
                "text to see what coded entries cost."
            ]
        if self.bits == 8 and stored.number_format == "bfloat16":
            return [
                "In bfloat16 the scales and the restored numbers have 8 significant bits, as many as the codes: a "
                "number comes back within about one step of its code, not half a step as in float32."
            ]
        return []

    def number_words(self, item_bytes: int) -> str | None:
        return None

    def bytes_at(self, widths: Widths, evicted_at: Ints, quantised_at: tuple[Ints, Ints] | None) -> Ints:
        """Exact keys · their bytes + key blocks that hold a living entry · theirs + exact values + quantised values.

        Quantised keys of a head lie in position order, so every ``group`` of them is one block, which lives as long
        as any of them.
        """
        import numpy as np

        assert quantised_at is not None, "a run with quantised storage says when it quantised what"
        key_at, value_at = quantised_at
        tokens, begin = evicted_at.shape[-1], entered_at(evicted_at)

        def held(since: Ints, until: Ints) -> Ints:
            return held_at(np.minimum(since, until), until, tokens)

        is_coded = key_at < tokens
        since = key_at[is_coded].reshape(-1, self.group)[:, 0]
        until = evicted_at[is_coded].reshape(-1, self.group).max(axis=1)
        keys = held(begin, np.minimum(key_at, evicted_at)) * widths.key_bytes
        blocks = held(since, until) * self.key_block_bytes(widths)
        exact_values = held(begin, np.minimum(value_at, evicted_at)) * widths.value_bytes
        return keys + blocks + exact_values + held(value_at, evicted_at) * self.value_bytes(widths)

    def fullest_lengths(self, tokens: int, sinks: int, recent: int) -> set[int]:
        """This length and the earlier ones at which the cache can be largest.

        Bytes rise with exact keys and fall when ``residual`` of them are quantised or the last entry of a block
        leaves. Between two times of quantising the blocks leave at equal steps, so the largest of these is the first
        or the last one. That recurs once entries are evicted; before, and while the first ones leave, it has to be
        looked at by itself.
        """
        full = recent + sinks
        first_leaves = recent + (-(-sinks // self.group) + 1) * self.group - 1
        found = {tokens}
        for length in (tokens, full, first_leaves, full + self.residual, full + 2 * self.residual):
            found |= {length} | self.turns_before(length, recent)
        return {length for length in found if 1 <= length <= tokens}

    def turns_before(self, length: int, recent: int) -> set[int]:
        """Lengths up to this one just before keys are quantised or a block leaves, in this period and the last two."""
        found, period = set(), length - length % self.residual
        for end in (length, period - 1, period - 1 - self.residual):
            start = end - end % self.residual
            last = end - (end - recent + 1) % self.group
            found |= {end, start, last, last - self.group, start + (recent - 1 - start) % self.group}
        return found


@dataclass(frozen=True)
class Int8(Quantised):
    title = "int8: 8 bits and scales"
    bits = 8


@dataclass(frozen=True)
class Int4(Quantised):
    title = "int4: 4 bits and scales"
    bits = 4


@dataclass(frozen=True)
class Int2(Quantised):
    title = "int2: 2 bits and scales"
    bits = 2

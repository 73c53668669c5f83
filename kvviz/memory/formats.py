"""Ways to store an entry that other engines have and the running model here has not: blocks of 32 with one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kvviz import knobs
from kvviz.choices.storage import STORAGES, Storage, Widths
from kvviz.memory import formulas


@dataclass(frozen=True)
class Blocks(Storage):
    """Rows of numbers in blocks of 32 that share a scale."""

    per_block: ClassVar[int]
    is_exact = False
    source = "llama.cpp, ggml-common.h: block_q8_0 and block_q4_0"

    def layer_bytes(self, kv_heads: int, widths: Widths, seen: int, sinks: int, recent: int) -> int:
        """Blocks go by head, and llama.cpp takes no head that is not made of whole ones."""
        for width in (widths.key, widths.value):
            if width % formulas.BLOCK_NUMBERS:
                raise ValueError(
                    f"{self.name()} codes a head in blocks of {formulas.BLOCK_NUMBERS} numbers, and a head of {width} "
                    "is not made of whole blocks; choose native."
                )
        blocks = kv_heads * (widths.key + widths.value) // formulas.BLOCK_NUMBERS
        return min(seen, sinks + recent) * blocks * self.per_block

    def number_words(self, item_bytes: int) -> str | None:
        return f"{self.per_block}/{formulas.BLOCK_NUMBERS}"


@dataclass(frozen=True)
class Q8_0(Blocks):
    title = "q8_0: 34 bytes for 32 numbers"
    per_block = formulas.Q8_0_BYTES


@dataclass(frozen=True)
class Q4_0(Blocks):
    title = "q4_0: 18 bytes for 32 numbers"
    per_block = formulas.Q4_0_BYTES


ALL_STORAGES: dict[str, type[Storage]] = {**STORAGES, "q8_0": Q8_0, "q4_0": Q4_0}


def parse_any_storage(text: str) -> Storage:
    """As ``kvviz.choices.storage.parse_storage``, with the formats of llama.cpp."""
    return knobs.parse(text, ALL_STORAGES)

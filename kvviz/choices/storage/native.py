"""Native storage: nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.choices.storage.base import Storage, Terms, Widths, entered_at, held_at

if TYPE_CHECKING:
    from kvviz.choices.storage.base import Ints


@dataclass(frozen=True)
class Native(Storage):
    """In the number format the model computes in."""

    title = "Native: the model's own numbers"
    source = "no change"
    is_exact = True

    def head_terms(self, widths: Widths, seen: int, sinks: int, recent: int) -> Terms:
        return [(min(seen, sinks + recent), widths.entry_bytes)]

    def number_words(self, item_bytes: int) -> str | None:
        return str(item_bytes)

    def bytes_at(self, widths: Widths, evicted_at: Ints, quantised_at: tuple[Ints, Ints] | None) -> Ints:
        return held_at(entered_at(evicted_at), evicted_at, evicted_at.shape[-1]) * widths.entry_bytes

"""What every kind of storage says of itself. Whoever counts asks these questions and never which kind it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from kvviz.knobs import Choice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[Any]

Terms: TypeAlias = "list[tuple[int, int]]"  # how many there are, and the bytes of one


@dataclass(frozen=True)
class Widths:
    """What one entry of one KV head holds: channels of its key and of its value, bytes of one number."""

    key: int
    value: int
    item_bytes: int

    @property
    def key_bytes(self) -> int:
        return self.key * self.item_bytes

    @property
    def value_bytes(self) -> int:
        return self.value * self.item_bytes

    @property
    def entry_bytes(self) -> int:
        return self.key_bytes + self.value_bytes


@dataclass(frozen=True)
class Stored:
    """What a run has stored so far."""

    total_bytes: int
    cold_bytes: int  # of them, away from the model's device
    device: str  # "cpu", "cuda" or "mps"
    number_format: str  # the model's own, such as "float32"
    most_held: int  # entries that one layer and head held after a step, at most
    has_codes: bool  # whether any entry was ever quantised


@dataclass(frozen=True)
class Storage(Choice):
    """How the keys and values of a kept token are held in memory. A kind answers all of this or is refused."""

    kind: ClassVar[str] = "storage"
    is_exact: ClassVar[bool]  # whether an entry comes back as it was stored
    needs_heads: ClassVar[bool] = False  # whether it needs a key and a value of every head, which a latent has not

    def head_terms(self, widths: Widths, seen: int, sinks: int, recent: int) -> Terms:
        """Bytes of one KV head after ``seen`` tokens, of which the first ``sinks`` and the latest ``recent`` are held.

        The terms add up to the bytes: Σ count · size.
        """
        raise NotImplementedError

    def layer_bytes(self, kv_heads: int, widths: Widths, seen: int, sinks: int, recent: int) -> int:
        """Bytes of one layer, all its KV heads holding as much."""
        terms = self.head_terms(widths, seen, sinks, recent)
        return kv_heads * sum(count * size for count, size in terms)

    def number_words(self, item_bytes: int) -> str | None:
        """Bytes of one number in words, such as ``34/32``; None where numbers do not all take the same."""
        raise NotImplementedError

    def bytes_at(self, widths: Widths, evicted_at: Ints, quantised_at: tuple[Ints, Ints] | None) -> Ints:
        """Bytes of one layer after each step, (T,), from the lifetimes of its entries.

        ``evicted_at`` and both arrays of ``quantised_at`` (of keys and of values) are (H, T) steps, T = still there,
        or never quantised.
        """
        raise NotImplementedError

    def fullest_lengths(self, tokens: int, sinks: int, recent: int) -> set[int]:
        """Lengths up to ``tokens``, one of which has the most bytes; ``tokens`` alone where bytes never fall."""
        return {tokens}

    def notes(self, stored: Stored) -> list[str]:
        """Sentences about what a run has stored, for a reader of its numbers."""
        return []


def held_at(since: Ints, until: Ints, tokens: int) -> Ints:
    """How many of the spans [since, until) hold each of the steps 0 … tokens − 1, (T,)."""
    import numpy as np  # the memory room counts without it

    starts = np.bincount(since.ravel(), minlength=tokens + 1)[:tokens]
    ends = np.bincount(until.ravel(), minlength=tokens + 1)[:tokens]
    return np.cumsum(starts - ends)


def entered_at(evicted_at: Ints) -> Ints:
    """The step at which each entry came, in the shape of ``evicted_at``: token j enters at step j."""
    import numpy as np

    return np.broadcast_to(np.arange(evicted_at.shape[-1]), evicted_at.shape)

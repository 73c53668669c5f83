"""The bill: bytes of every group of layers, their sum, and the arithmetic in words and as a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from kvviz.choices.storage import Native, Storage, Widths
from kvviz.memory import formulas
from kvviz.memory.shape import KIND_WORDS, NUMBER_BYTES, Group, Shape


@dataclass(frozen=True)
class Kept:
    """What some layers of a group hold of one sequence: the first ``sinks`` tokens and the latest ``recent``."""

    layers: int
    recent: int
    sinks: int = 0
    # what kvviz's exact count needs: tokens of the sequence, or entries taken as if they lay side by side
    seen: int = 0

    @property
    def entries(self) -> int:
        return min(self.seen, self.sinks + self.recent)


Keeping: TypeAlias = Callable[[Group, int], list[Kept]]


def everything(group: Group, tokens: int) -> list[Kept]:
    """The full cache: all tokens, or what the architecture's own window leaves of them."""
    return [Kept(group.layers, formulas.window_tokens(tokens, group.window), seen=tokens)]


@dataclass(frozen=True)
class Ask:
    """What is to be counted: tokens of each of ``batch`` sequences, their number format, storage and policy."""

    tokens: int
    batch: int = 1
    dtype: str | None = None  # None = the model's own
    storage: Storage = field(default_factory=Native)
    keeping: Keeping = everything

    def __post_init__(self) -> None:
        for name in ("tokens", "batch"):
            if not 1 <= getattr(self, name) <= 10**15:
                raise ValueError(f"{name}={getattr(self, name)} must be a whole number from 1 to {10**15:,}.")


@dataclass(frozen=True)
class Row:
    """One group's share: the factors multiplied, each with its word, or the sum they stand for."""

    kind: str
    layers: int
    entries: int  # the most tokens that any of its layers holds
    bytes: int
    factors: tuple[tuple[str, str], ...]  # (number, word)
    kv_heads: int = 1

    @property
    def words(self) -> str:
        return " × ".join(" ".join(filter(None, factor)) for factor in self.factors)


@dataclass(frozen=True)
class Account:
    """All groups of a model together."""

    rows: tuple[Row, ...]

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in self.rows)

    @property
    def formula(self) -> str:
        return " + ".join(row.words for row in self.rows) + f" = {self.bytes:,} B"


def account(shape: Shape, ask: Ask) -> Account:
    """Payload: the bytes that the tensors of this cache hold, neither pages nor spare capacity."""
    item_bytes = NUMBER_BYTES[ask.dtype or shape.dtype]
    return Account(tuple(row_of(group, ask, item_bytes) for group in shape.groups))


def bytes_of(shape: Shape, ask: Ask) -> int:
    return account(shape, ask).bytes


def row_of(group: Group, ask: Ask, item_bytes: int) -> Row:
    sequences = (counted(ask.batch, "sequence"),) if ask.batch > 1 else ()
    if group.kind == "state":
        factors = (counted(group.layers, "layer"), (f"{group.state_bytes:,}", "B of constant state"))
        total = formulas.state_bytes(group.layers, group.state_bytes, ask.batch)
        return Row(group.kind, group.layers, 0, total, factors + sequences)
    kept = ask.keeping(group, ask.tokens)
    total = sum(kept_bytes(group, part, ask.storage, item_bytes) for part in kept) * ask.batch
    shown = factors_of(group, kept, ask.storage, item_bytes)
    return Row(group.kind, group.layers, max(part.entries for part in kept), total, shown + sequences, group.kv_heads)


def kept_bytes(group: Group, kept: Kept, storage: Storage, item_bytes: int) -> int:
    """Bytes of the layers that hold the same number of entries, one sequence.

    In plain numbers L · S · n_kv · (d_K + d_V) · b: MHA has n_kv = query heads, MQA 1, GQA something between (Ainslie
    et al., GQA, 2023). A latent serves keys and values of all heads, L · S · (d_c + d_R) · b (DeepSeek-V2, 2024), and
    so does the indexer's key of sparse attention, L · S · d_I · b (DeepSeek-V3.2, 2025): one head, no value.
    """
    if storage.needs_heads and group.is_latent:
        raise ValueError(
            f"{storage.name()} codes keys by channel and values by token, and {KIND_WORDS[group.kind]} has no such "
            "pair; choose native, q8_0 or q4_0."
        )
    widths = Widths(group.key_width, group.value_width, item_bytes)
    return kept.layers * storage.layer_bytes(group.kv_heads, widths, kept.seen, kept.sinks, kept.recent)


def factors_of(group: Group, kept: list[Kept], storage: Storage, item_bytes: int) -> tuple[tuple[str, str], ...]:
    """The product in the words of the page: 2 × layers × tokens × KV heads × width × bytes."""
    entries = {part.entries for part in kept}
    layers: tuple[tuple[str, str], ...] = (counted(group.layers, "layer"), counted(entries.pop(), "token"))
    if entries:  # layers differ: the sum over them stands for layers × tokens
        layers = ((f"{sum(part.layers * part.entries for part in kept):,}", "entries of all layers"),)
    number = storage.number_words(item_bytes)
    if number is None:
        return term_factors(group, kept, storage, item_bytes)
    return (*numbers_of(group, layers), (number, "B"))


def term_factors(group: Group, kept: list[Kept], storage: Storage, item_bytes: int) -> tuple[tuple[str, str], ...]:
    """Layers × KV heads × the bytes of one head, taken apart where all layers hold the same."""
    if len(kept) > 1:
        total = sum(kept_bytes(group, part, storage, item_bytes) for part in kept)
        return ((f"{total:,}", f"B, {group.layers} layers that hold different numbers of coded entries"),)
    widths = Widths(group.key_width, group.value_width, item_bytes)
    terms = storage.head_terms(widths, kept[0].seen, kept[0].sinks, kept[0].recent)
    sum_of = " + ".join(f"{count:,} × {size:,}" for count, size in terms if count)
    return (counted(group.layers, "layer"), counted(group.kv_heads, "KV head"), (f"({sum_of or 0})", "B"))


def counted(number: int, word: str) -> tuple[str, str]:
    """``("8", "KV heads")``."""
    return f"{number:,}", word if number == 1 else f"{word}s"


def numbers_of(group: Group, layers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    if group.kind == "mla":
        return (*layers, (f"({group.key_width - group.rope} + {group.rope})", ""))
    if group.kind == "indexer":
        return (*layers, (str(group.key_width), ""))
    if group.key_width == group.value_width:
        return (("2", ""), *layers, counted(group.kv_heads, "KV head"), (str(group.key_width), ""))
    return (*layers, counted(group.kv_heads, "KV head"), (f"({group.key_width} + {group.value_width})", ""))

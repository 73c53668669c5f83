"""What the Memory page says: the headline, boxes, lines and tables, all from the same bills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from kvviz.choices.setup import Setup
from kvviz.figures import Drawing, Table, theme
from kvviz.figures.context import Line, bytes_against_context
from kvviz.figures.drawing import row_table
from kvviz.figures.memory import Box, memory_boxes
from kvviz.memory import Account, Ask, Row, account, preset
from kvviz.memory.account import bytes_of
from kvviz.memory.shape import KIND_WORDS
from kvviz.memory.units import GIB, binary, both
from kvviz.ui.memory.controls import Chosen
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.state import View

WHOLE = "Everything kept"
SHORT_KINDS = {"full": "Full layers", "sliding": "Sliding layers", "chunked": "Chunked layers", "mla": "MLA layers"}
SHORT_KINDS |= {"indexer": "Indexer", "state": "Layers with a state"}
# capacities as nvidia-smi tells them, rounded to whole GiB
GPUS = ((8, "8 GiB, laptop GPU"), (24, "24 GiB, RTX 4090"), (80, "80 GiB, H100"))
BACKDROP = ("Llama-2-7b-hf", "Llama-3.1-70B", "gemma-3-27b", "DeepSeek-V3")
CONTEXTS = tuple(2**power for power in range(10, 21))


@dataclass(frozen=True)
class Bill:
    """One setup's bytes: everything kept, or side A or B."""

    name: str
    side: theme.Side | None
    words: str
    ask: Ask
    account: Account

    @property
    def is_whole(self) -> bool:
        return self.side is None


def bills(chosen: Chosen, view: View) -> tuple[list[Bill], list[str]]:
    """Everything kept, A and B, and the sentences about them."""
    found, notes = [Bill(WHOLE, None, "", chosen.whole, account(chosen.shape, chosen.whole))], list(chosen.shape.notes)
    sides: list[tuple[theme.Side, Setup]] = [("a", view.experiment.setup), ("b", view.versus)]
    for side, setup in sides:
        ask, words, doubts = chosen.under(setup)
        found.append(Bill(side.upper(), side, words, ask, account(chosen.shape, ask)))
        notes += doubts
    if any(setup.policy.acts_once for _, setup in sides):
        notes.append("The prompt is half of the context here; until it has been read, all of it is in the cache.")
    if chosen.gpus > 1:
        notes.append(f"The bytes are those on the fullest of {chosen.gpus} GPUs that share the heads.")
    return found, list(dict.fromkeys(notes))


def headline(chosen: Chosen, found: Sequence[Bill]) -> str:
    """What it costs to keep everything, and under A and B where that is less."""
    whole = found[0].account.bytes
    sequences = f" × {chosen.batch:,} sequences" if chosen.batch > 1 else ""
    start = f"{chosen.name} at {chosen.tokens:,} {'token' if chosen.tokens == 1 else 'tokens'}{sequences}: "
    parts = [f"{both(whole)} in {chosen.dtype}"]
    parts += [f"under {bill.name} ({bill.words}) {both(b)}" for bill in found[1:] if (b := bill.account.bytes) != whole]
    return f"{start}{'; '.join(parts)}."


def boxes(chosen: Chosen, found: Sequence[Bill]) -> Drawing:
    """From one K and V a query head to what A and B really keep: each step shrinks its own side.

    Behind it are the bills, which have every group of layers.
    """
    ordinary = account(chosen.shape.as_multi_head(), chosen.whole).rows[0]
    steps = [box("One KV head per query head", ordinary, chosen)]
    whole = found[0].account.rows
    steps += [box(f"{SHORT_KINDS[row.kind]} of this model", row, chosen) for row in whole if row.kind != "state"]
    for bill in found[1:]:
        changed = [row for row, before in zip(bill.account.rows, whole, strict=True) if 0 < row.bytes != before.bytes]
        if changed:
            steps.append(box(box_title(bill), max(changed, key=lambda row: row.layers), chosen, bill.side))
    title = f"One layer of {chosen.name}: tokens × heads × bytes"
    return drawn(memory_boxes, steps, title=title).with_table(bills_table(found))


def box_title(bill: Bill) -> str:
    """The side and its setup, or where that is too long its policy alone."""
    title = f"{bill.name}: {bill.words}"
    return title if short(title) == title else f"{bill.name}: {bill.words.partition(',')[0]}"


def box(title: str, row: Row, chosen: Chosen, side: theme.Side | None = None) -> Box:
    """A row of a bill as a box; with coded storage the depth is the mean of its entries."""
    heads = row.kv_heads
    depth = row.bytes / (max(1, row.entries) * max(1, row.layers) * max(1, heads) * chosen.batch)
    words = (f"{row.entries:,} tokens", heads_words(row), f"{depth:,.4g} B")
    times = f" × {chosen.batch:,}" if chosen.batch > 1 else ""  # sequences, which the other figure's title names
    below = f"× {row.layers} {'layer' if row.layers == 1 else 'layers'}{times} = {binary(row.bytes)}"
    return Box(short(title), max(1, row.entries), heads, depth or 1.0, words, below, side)


def heads_words(row: Row) -> str:
    if row.kind in ("mla", "indexer"):
        return "1 latent" if row.kind == "mla" else "1 key"
    return "1 head" if row.kv_heads == 1 else f"{row.kv_heads} heads"


def short(title: str, most: int = 34) -> str:
    """A title that fits above its box in two lines."""
    return title if len(title) <= most else title[: most - 1] + "…"


def lines(chosen: Chosen, found: Sequence[Bill]) -> tuple[list[int], list[Line]]:
    """Everything kept, A and B against context, and other models to compare with."""
    contexts = sorted({*CONTEXTS, *turning_points(chosen, found)})

    def line(bill: Bill) -> Line:
        counts = tuple(bytes_of(chosen.shape, replace(bill.ask, tokens=tokens)) for tokens in contexts)
        name = f"{chosen.name}, everything kept" if bill.is_whole else f"{bill.name}: {bill.words}"
        return Line(name, counts, bill.side, bill.is_whole)

    ours = [line(bill) for bill in found]
    if any(other.bytes == ours[0].bytes for other in ours[1:]):
        ours = ours[1:]  # a side that keeps everything is that line already
    others = [name for name in BACKDROP if preset(name).name != chosen.shape.name]
    return contexts, ours + [Line(name, backdrop(name, tuple(contexts), chosen.batch)) for name in others]


@lru_cache(maxsize=256)
def backdrop(name: str, contexts: tuple[int, ...], batch: int) -> tuple[int, ...]:
    return tuple(bytes_of(preset(name), Ask(tokens, batch)) for tokens in contexts)


def lines_figure(chosen: Chosen, found: Sequence[Bill]) -> Drawing:
    """Bytes against context beside other models."""
    contexts, shown = lines(chosen, found)
    capacities = [(size * GIB, name) for size, name in GPUS]
    title = f"Cache against context{f', {chosen.batch:,} sequences' if chosen.batch > 1 else ''}"
    return drawn(bytes_against_context, contexts, shown, capacities, here=chosen.tokens, title=title)


def turning_points(chosen: Chosen, found: Sequence[Bill]) -> set[int]:
    """Contexts at which a line bends: windows, budgets, and where one is now."""
    points = {chosen.tokens} | {row.entries for bill in found for row in bill.account.rows}
    points |= {group.window for name in BACKDROP for group in preset(name).groups if group.window}
    return {point for point in points if CONTEXTS[0] < point < CONTEXTS[-1]}


def latex(row: Row) -> str:
    """The product of one group with the numbers put in."""
    factors = []
    for number, word in row.factors:
        digits = number.replace(",", r"\,").replace("×", r"\times")
        factors.append(rf"\underbrace{{{digits}}}_{{\text{{{word}}}}}" if word else digits)
    total = f"{row.bytes:,}".replace(",", r"\,")
    product = r" \times ".join(factors)
    return rf"\text{{{SHORT_KINDS[row.kind]}:}}\quad {product} = {total}\ \text{{B}} = \text{{{binary(row.bytes)}}}"


def groups_table(found: Sequence[Bill]) -> str:
    """Payload by group of layers, one column a setup."""
    table = ["| group | layers | " + " | ".join(bill.name for bill in found) + " |", "|:--|--:|" + "--:|" * len(found)]
    for place, first in enumerate(found[0].account.rows):
        rows = [bill.account.rows[place] for bill in found]
        cells = [f"{binary(row.bytes)}{held_words(row)}" for row in rows]
        table.append(f"| {KIND_WORDS[first.kind]} | {first.layers} | {' | '.join(cells)} |")
    table.append("| **all** | | " + " | ".join(f"**{both(bill.account.bytes)}**" for bill in found) + " |")
    return "\n".join(table)


def held_words(row: Row) -> str:
    return "" if row.kind == "state" else f" · {row.entries:,} tokens"


def bills_table(found: Sequence[Bill]) -> Table:
    """A row a setup and group of layers, in bytes."""
    header = ("setup", "kind", "layers", "tokens_held", "bytes", "formula")
    rows = [
        (bill.name, row.kind, row.layers, row.entries, row.bytes, row.words)
        for bill in found
        for row in bill.account.rows
    ]
    return row_table(header, rows)

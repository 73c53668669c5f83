"""The Memory page's tables: how many fit, what engines set aside, other ways to store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kvviz.memory import NUMBER_BYTES
from kvviz.memory.account import bytes_of
from kvviz.memory.engines import ENGINES
from kvviz.memory.formats import ALL_STORAGES
from kvviz.memory.inverse import fit_sequences, fit_tokens
from kvviz.memory.units import binary, both, decimal
from kvviz.ui.memory.controls import Chosen
from kvviz.ui.memory.view import Bill
from kvviz.ui.shell.words import plain, plural


def source_words(chosen: Chosen) -> str:
    shape = chosen.shape
    return f"Config of {plain(shape.name)} as of {shape.as_of}: {plain(shape.source)}." if shape.source else ""


def head_words(chosen: Chosen) -> str:
    """How many heads are cached, or how wide a latent is, against ordinary multi-head attention."""
    shape = chosen.whole_shape
    if not shape.groups:
        return "No layer holds a cache of its own."
    group = max(shape.groups, key=lambda group: group.row_numbers)
    ordinary = 2 * shape.query_heads * shape.head_width
    if group.kind == "mla":
        sizes = f"{group.key_width - group.rope} + {group.rope} = {group.key_width} numbers"
        return (
            f"MLA: {sizes} per token and layer (the last {group.rope} carry RoPE); multi-head attention keeps "
            f"{ordinary:,}."
        )
    name = {1: "MQA", shape.query_heads: "MHA"}.get(group.kv_heads, "GQA")
    heads = f"{plural(group.kv_heads, 'KV head')} for {plural(shape.query_heads, 'query head')}"
    return f"{name}: {heads}, a ratio of {group.kv_heads}/{shape.query_heads} set in training."


def fit_words(chosen: Chosen) -> str:
    """The room that is left beside the weights."""
    room = chosen.room_bytes - chosen.weights_bytes
    if not chosen.weights_bytes:
        return f"These fit into {both(chosen.room_bytes)} (the weights are not known: give the number of parameters):"
    if room <= 0:
        return (
            f"The weights alone take {both(chosen.weights_bytes)}, more than {both(chosen.room_bytes)}: nothing fits."
        )
    size = NUMBER_BYTES[chosen.shape.dtype]
    weights = f"{both(chosen.weights_bytes)} of weights ({(chosen.shape.parameters or 0) / 1e6:,.0f} million × {size} B"
    weights += f", a share of {chosen.gpus})" if chosen.gpus > 1 else ")"
    return f"Beside {weights}, {both(room)} of {both(chosen.room_bytes)} are left:"


def fit_table(chosen: Chosen, found: Sequence[Bill]) -> str:
    """The inverse question, exact: one more token, or one more sequence, would not fit."""
    room = chosen.room_bytes - chosen.weights_bytes
    each = f"tokens of {chosen.batch:,} sequences each" if chosen.batch > 1 else "tokens of one sequence"
    lines = [f"| | {each} | sequences of {chosen.tokens:,} tokens |", "|:--|--:|--:|"]
    for bill in found:
        tokens, sequences = fit_tokens(chosen.shape, bill.ask, room), fit_sequences(chosen.shape, bill.ask, room)
        lines.append(
            f"| {bill.name}{plain(f': {bill.words}') if bill.words else ''} | {count(tokens)} | {count(sequences)} |"
        )
    return "\n".join(lines)


def count(number: int | None) -> str:
    return "any number" if number is None else f"{number:,}"


def engines_table(chosen: Chosen) -> str:
    """Payload beside what engines set aside when everything is kept."""
    table = ["| counted by | GiB | GB |", "|:--|--:|--:|"]
    totals = {"payload: what the tensors hold": bytes_of(chosen.shape, chosen.whole)}
    totals |= {engine.title: engine.bytes(chosen.shape, chosen.whole) for engine in ENGINES.values()}
    table += [f"| {title} | {units(total)} |" for title, total in totals.items()]
    return "\n".join(table)


def engine_rules() -> str:
    return "  \n".join(f"{engine.title}: {engine.rule}." for engine in ENGINES.values())


def units(total: int) -> str:
    """Two cells in which number and unit stay on one line."""
    return " | ".join(word(total).replace(" ", "\N{NO-BREAK SPACE}") for word in (binary, decimal))


def storages_table(chosen: Chosen) -> str:
    """The same entries stored otherwise, scales included."""
    lines = ["| storage | GiB | GB |", "|:--|--:|--:|"]
    asks = {f"native, {chosen.dtype}": chosen.whole, "float8, one byte": replace(chosen.whole, dtype="float8")}
    coded = [cls() for cls in ALL_STORAGES.values() if not cls.is_exact]
    asks |= {storage.title: replace(chosen.whole, storage=storage) for storage in coded}
    for title, ask in asks.items():
        try:
            total = bytes_of(chosen.shape, ask)
        except ValueError:
            lines.append(f"| {title} | not defined for MLA | |")
            continue
        lines.append(f"| {title} | {units(total)} |")
    return "\n".join(lines)

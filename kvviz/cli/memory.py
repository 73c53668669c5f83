"""``python -m kvviz memory``: the bill of a preset or of any ``config.json``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kvviz.cli.inputs import say
from kvviz.cli.options import whole
from kvviz.memory.account import Ask, account
from kvviz.memory.config import NO_FORMAT, read_config
from kvviz.memory.engines import ENGINES
from kvviz.memory.fields import MAX_CONFIG_BYTES, config_words
from kvviz.memory.formats import parse_any_storage
from kvviz.memory.inverse import growth_bytes
from kvviz.memory.presets import preset
from kvviz.memory.retention import ask_for, doubts
from kvviz.memory.shape import Shape, number_format
from kvviz.memory.units import both
from kvviz.policies import parse_policy

ABOUT = "bytes of a cache of any model, by the formula; no model is loaded"
MOST_TOKENS = 10**12


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    """Bytes, growth, groups and formula as JSON; notes go to standard error."""
    check(arguments)
    policy, storage = parse_policy(arguments.policy), parse_any_storage(arguments.storage)
    dtype = None if arguments.dtype is None else number_format(arguments.dtype)
    shape = shape_for(arguments).on_each_of(arguments.gpus)
    more = {"tokens": arguments.tokens, "batch": arguments.batch, "dtype": dtype, "storage": storage}
    ask = ask_for(policy, shape, arguments.prompt_tokens, **more)
    bill = account(shape, ask)
    whole = Ask(arguments.tokens, arguments.batch, dtype, storage)
    told = [note for note in shape.notes if dtype is None or note != NO_FORMAT]
    for note in (*told, *doubts(policy, storage, shape), *unlike_engines(whole, dtype or shape.dtype)):
        say(note)
    return {
        "bytes": bill.bytes,
        "size": both(bill.bytes),
        "growth_bytes_per_token": growth_bytes(shape, ask),
        "groups": [{"layers": row.layers, "kind": row.kind, "bytes": row.bytes} for row in bill.rows],
        "formula": bill.formula,
        "allocated_without_policy": {name: engine.bytes(shape, whole) for name, engine in ENGINES.items()},
    }


def unlike_engines(ask: Ask, dtype: str) -> list[str]:
    """A sentence about the engines that have no such storage."""
    names = [name for name, engine in ENGINES.items() if not engine.stores(ask)]
    if not names:
        return []
    return [f"In allocated_without_policy, {', '.join(names)} hold {dtype}: no {ask.storage.name()} there."]


def check(arguments: argparse.Namespace) -> None:
    for name, most in (
        ("tokens", MOST_TOKENS),
        ("batch", MOST_TOKENS),
        ("gpus", 10**6),
        ("prompt_tokens", MOST_TOKENS),
    ):
        value = getattr(arguments, name)
        if value is not None and not 1 <= value <= most:
            raise ValueError(f"--{name.replace('_', '-')} {value} must be a whole number from 1 to {most:,}.")
    if (arguments.prompt_tokens or 1) > arguments.tokens:
        raise ValueError(f"--prompt-tokens {arguments.prompt_tokens} must be at most --tokens, {arguments.tokens}.")


def shape_for(arguments: argparse.Namespace) -> Shape:
    if arguments.config is None:
        return preset(arguments.model)
    return read_config(config_text(arguments.config), arguments.config)


def config_text(path: str) -> str:
    """The file, or standard input for ``-``; no more of it than a config may have."""
    try:
        if path == "-":
            if sys.stdin is None:
                raise ValueError("There is no standard input to read; give a file instead of -.")
            raw = sys.stdin.buffer.read(MAX_CONFIG_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                raw = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise ValueError(f"The file {path!r} cannot be read: {error.strerror}.") from None
    return config_words(raw)


def add_options(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "bytes is the payload. growth_bytes_per_token is what one more token adds at this length; it is negative where "
        "coded storage (int4 and the like) codes a run of exact keys, or lets a block go, at that "
        "token. allocated_without_policy is what engines set aside with every token kept: "
        "llama_cpp in q8_0 or q4_0 where --storage says so, otherwise in numbers of --dtype."
    )
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", metavar="NAME", help="a model of the table, such as Llama-3.1-8B")
    which.add_argument("--config", metavar="FILE", help="any model's config.json; - reads standard input")
    command.add_argument("--tokens", type=whole, required=True, metavar="N", help="tokens of each sequence")
    command.add_argument("--batch", type=whole, default=1, metavar="B", help="sequences, default 1")
    command.add_argument("--dtype", default=None, help="of the cache; default the config's, else bfloat16")
    command.add_argument("--policy", default="full", metavar="SPEC", help="default full")
    command.add_argument("--storage", default="native", metavar="SPEC", help="default native; also q8_0, q4_0")
    command.add_argument("--prompt-tokens", type=whole, default=None, metavar="P", help="default: half the tokens")
    command.add_argument("--gpus", type=whole, default=1, metavar="G", help="bytes on the fullest of G GPUs, default 1")

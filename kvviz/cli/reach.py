"""``python -m kvviz reach``: how far a pattern lets the last token see; no model is needed."""

from __future__ import annotations

import argparse
from typing import Any

from kvviz.choices.patterns import parse_pattern
from kvviz.cli.inputs import check_least, say
from kvviz.cli.options import whole
from kvviz.text.counting import plural

ABOUT = "how many input positions the last token depends on after each layer; needs no model"
REACH_MOST = {"layers": 512, "tokens": 2**18}  # a set is one bool a token and layer


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--pattern", required=True, metavar="SPEC", help="such as sliding:window=32")
    command.add_argument("--layers", type=whole, required=True, metavar="L", help="layers 1 to L are listed")
    command.add_argument("--tokens", type=whole, required=True, metavar="N", help="the last of N tokens is asked about")


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    pattern = parse_pattern(arguments.pattern)
    check_least(arguments)
    for name, most in REACH_MOST.items():
        if getattr(arguments, name) > most:
            raise ValueError(f"--{name} {getattr(arguments, name)} is too large; choose a number from 1 to {most}.")
    from kvviz.measures.reach import reach as sets
    from kvviz.measures.reach import span

    if len(getattr(pattern, "dilation", ())) > 1:
        heads = plural(len(pattern.dilation), "KV head")  # type: ignore[attr-defined]
        say(f"Counted for {heads}, one for each dilation; a model with fewer uses the first ones only.")

    found = sets(pattern, arguments.layers, arguments.tokens)
    rows = [
        {"layer": depth, "positions": int(positions.sum()), "span": span(positions)}
        for depth, positions in enumerate(found, 1)
    ]
    return {"layers": rows}

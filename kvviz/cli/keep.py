"""``python -m kvviz keep``: which positions one KV head holds after each step."""

from __future__ import annotations

import argparse
from typing import Any

from kvviz.cli import replayed as common
from kvviz.cli.options import whole
from kvviz.cli.replayed import replayed

ABOUT = "which positions one KV head holds after each step"


def add_options(command: argparse.ArgumentParser) -> None:
    common.add_options(command)
    command.add_argument("--layer", type=whole, default=0, metavar="L")
    command.add_argument("--head", type=whole, default=0, metavar="H", help="KV head")


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    trace = replayed(arguments)
    layer, head = arguments.layer, arguments.head
    if not (0 <= layer < trace.layers and 0 <= head < trace.kv_heads):
        raise ValueError(
            f"There is no layer {layer}, KV head {head}: this model has layers 0–{trace.layers - 1} and KV heads "
            f"0–{trace.kv_heads - 1}."
        )
    return {"kept": [trace.kept(layer, head, step).tolist() for step in range(trace.tokens)]}

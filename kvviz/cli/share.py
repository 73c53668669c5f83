"""``python -m kvviz share``: prompts that share the blocks of their common beginnings."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from kvviz.choices.setup import Setup
from kvviz.cli import inputs
from kvviz.cli.inputs import check_least, encoded, read_text, say_share
from kvviz.cli.options import add_model_options, whole

ABOUT = "prompts over shared blocks: what is a hit, where each prompt breaks, and whether the answers stay the same"
BLOCK = 16
ESCAPES = {"\\n": "\n", "\\\\": "\\"}


def add_options(command: argparse.ArgumentParser) -> None:
    add_model_options(command)
    command.add_argument("--prompts", required=True, metavar="FILE", help=r"one a line, a newline written as \n")
    command.add_argument("--block", type=whole, default=BLOCK, metavar="B", help=f"tokens, default {BLOCK}")
    command.add_argument("--blocks", type=whole, default=None, metavar="LIMIT", help="most blocks held, default all")


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    """``largest_gap`` in nats; bytes of keys and values."""
    from kvviz.analysis.sharing.serve import check_sizes, serve

    check_least(arguments)
    check_sizes([1], arguments.block, arguments.blocks, answers=1)
    texts = prompts_of(read_text(arguments.prompts))
    loaded = inputs.model_for(arguments, Setup())
    ids = [encoded(loaded, text, sys.maxsize) for text in texts]
    check_sizes([len(one) for one in ids], arguments.block, arguments.blocks, answers=1)
    inputs.refuse_work(loaded.model, 2 * sum(map(len, ids)))
    found = serve(loaded.model, ids, block=arguments.block, limit=arguments.blocks, progress=say_share)
    return {
        "prompts": [
            {
                "tokens": one.tokens,
                "hit_tokens": one.hit_tokens,
                "first_difference": one.difference.position if one.difference else None,
            }
            for one in found.prompts
        ],
        "blocks": found.blocks,
        "bytes_alone": found.bytes_alone,
        "bytes_shared": found.bytes_shared,
        "largest_gap": found.largest_gap,
    }


def prompts_of(content: str) -> list[str]:
    r"""One prompt a line, with ``\n`` and ``\\`` for a newline and a backslash; ValueError for an empty one."""
    lines = content.removesuffix("\n").split("\n")
    for place, line in enumerate(lines):
        if not line.removesuffix("\r"):
            raise ValueError(f"Prompt {place + 1} is empty; write at least one word in its line, or leave it out.")
    return [unescaped(line.removesuffix("\r")) for line in lines]


def unescaped(line: str) -> str:
    return re.sub(r"\\[n\\]", lambda found: ESCAPES[found[0]], line)

"""``python -m kvviz draft``: greedy decoding with draft trees, beside plain greedy decoding."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kvviz.choices.setup import Setup
from kvviz.cli import inputs
from kvviz.cli.inputs import check_least, encoded, prompt_of, say, say_share, token_ids_of
from kvviz.cli.options import add_model_options, whole
from kvviz.models.tokens import stop_tokens

ABOUT = "greedy decoding with draft trees, each verified in one forward, beside plain greedy decoding"
WIDTH, DEPTH, LAYERS = 4, 4, 24


def add_options(command: argparse.ArgumentParser) -> None:
    add_model_options(command)
    given = command.add_mutually_exclusive_group(required=True)
    given.add_argument("--prompt", metavar="TEXT")
    given.add_argument("--token-ids", metavar="FILE", help="a JSON list of token numbers; - reads standard input")
    command.add_argument("--max-new-tokens", type=whole, required=True, metavar="N")
    command.add_argument("--drafter", default="lookup", metavar="NAME", help="lookup or layers, default lookup")
    command.add_argument("--width", type=whole, default=WIDTH, metavar="W", help=f"branches, default {WIDTH}")
    command.add_argument("--depth", type=whole, default=DEPTH, metavar="D", help=f"tokens of a branch, default {DEPTH}")
    command.add_argument("--layers", type=whole, default=LAYERS, metavar="K", help=f"that draft, default {LAYERS}")


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    """``largest_gap`` in nats; exit status 2 for a tree wider than its budget."""
    check_least(arguments)
    from kvviz.analysis import estimate
    from kvviz.analysis.drafts.plain import agreeing
    from kvviz.analysis.drafts.speculation import Drafter, speculate
    from kvviz.analysis.drafts.tree import check_shape

    check_shape(arguments.width, arguments.depth)
    prompt = token_ids_of(arguments.token_ids) if arguments.token_ids is not None else prompt_of(arguments.prompt)
    loaded = inputs.model_for(arguments, Setup())
    ids = prompt if isinstance(prompt, list) else encoded(loaded, prompt, sys.maxsize)
    drafter = Drafter(arguments.drafter, arguments.width, arguments.depth, arguments.layers)
    drafter.check(loaded.model)
    inputs.refuse_work(loaded.model, 3 * estimate.writing(Setup(), len(ids), arguments.max_new_tokens))
    stop_at = stop_tokens(loaded.model, loaded.tokenizer)
    found = speculate(loaded.model, ids, drafter, arguments.max_new_tokens, stop_at=stop_at, progress=say_share)
    if found.margin is not None:
        place = agreeing(found.token_ids, found.greedy_token_ids)
        say(
            f"The two texts part at new token {place}, where the first and the second choice of plain decoding lie "
            f"{found.margin:.2g} nats apart; the runs differ by up to {found.largest_gap:.2g}."
        )
    return {
        "token_ids": list(found.token_ids),
        "greedy_token_ids": list(found.greedy_token_ids),
        "equal": found.is_equal,
        "steps": len(found.steps),
        "accepted": found.accepted,
        "largest_gap": found.largest_gap,
        "cache_gap": found.cache_gap,
        "text": loaded.tokenizer.decode(list(found.token_ids)),
    }

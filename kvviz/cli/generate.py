"""``python -m kvviz generate``: let the model write under a setup."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kvviz.cli import inputs
from kvviz.cli.inputs import check_least, encoded, prompt_of, say_notes, setup_of, token_ids_of
from kvviz.cli.options import add_setup_options, number, whole
from kvviz.models.tokens import stop_tokens

ABOUT = "let the model write under a setup"


def add_options(command: argparse.ArgumentParser) -> None:
    add_setup_options(command)
    prompt = command.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT")
    prompt.add_argument("--token-ids", metavar="FILE", help="a JSON list of token numbers; - reads standard input")
    command.add_argument("--max-new-tokens", type=whole, required=True, metavar="N")
    command.add_argument("--temperature", type=number, default=0.0, metavar="T", help="0 = greedy")
    command.add_argument(
        "--top-p", type=number, default=1.0, metavar="P", help="draw from the likeliest tokens of mass P"
    )
    command.add_argument("--seed", type=whole, default=0, metavar="N")


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    from kvviz.run.generate import check_sampling
    from kvviz.run.generate import generate as run

    setup = setup_of(arguments)
    check_least(arguments)
    check_sampling(arguments.max_new_tokens, arguments.temperature, arguments.top_p, arguments.seed)
    prompt = token_ids_of(arguments.token_ids) if arguments.token_ids is not None else prompt_of(arguments.prompt)
    loaded = inputs.model_for(arguments, setup)
    ids = prompt if isinstance(prompt, list) else encoded(loaded, prompt, sys.maxsize)
    from kvviz.analysis import estimate

    inputs.refuse_work(loaded.model, estimate.writing(setup, len(ids), arguments.max_new_tokens))
    trace = run(
        loaded.model,
        ids,
        setup,
        arguments.max_new_tokens,
        stop_at=stop_tokens(loaded.model, loaded.tokenizer),
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        seed=arguments.seed,
    )
    say_notes(trace)
    assert trace.chosen is not None
    last = trace.tokens - 1
    held = [[trace.kept(layer, head, last).tolist() for head in range(trace.kv_heads)] for layer in range(trace.layers)]
    return {
        "text": loaded.tokenizer.decode(trace.chosen),
        "token_ids": trace.chosen.tolist(),
        "positions_held": held,
        "cache_bytes": trace.cache_bytes,
        "ttft_seconds": trace.ttft_seconds,
        "tokens_per_second": trace.tokens_per_second,
    }

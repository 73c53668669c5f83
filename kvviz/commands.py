"""What each command computes: parsed options in, a JSON-ready answer out. ``__main__`` parses and prints."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from kvviz.command_input import (
    Check,
    check_all,
    check_block,
    check_least,
    check_prompt,
    encoded,
    load_model,
    prompt_of,
    read_text,
    say,
    say_if_short,
    say_notes,
    setup_of,
    token_ids_of,
)
from kvviz.counting import plural
from kvviz.knobs import Choice, describe_knobs
from kvviz.patterns import parse_pattern
from kvviz.policies import POLICIES

if TYPE_CHECKING:
    from kvviz.models import Loaded
    from kvviz.trace import Trace

REACH_MOST = {"layers": 512, "tokens": 2**18}  # a set is one bool a token and layer


def policies(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    return [describe(cls) for cls in POLICIES.values()]


def describe(cls: type[Choice]) -> dict[str, Any]:
    return {"name": cls.name(), "title": cls.title, "source": cls.source, "knobs": describe_knobs(cls)}


def nll(arguments: argparse.Namespace) -> dict[str, Any]:
    trace = replayed(arguments, check_scored)
    first = max(1, arguments.score_from)  # token 0 has no loss, nothing predicts it
    scored = trace.nll[first - 1 :]
    if np.isnan(scored).all():
        raise ValueError("None of the scored tokens was computed; choose a smaller --score-from or fewer --tokens.")
    mean = float(np.nanmean(scored))
    return {
        "policy": trace.setup.words()["policy"],
        "tokens": trace.tokens,
        "prompt_tokens": trace.prompt_tokens,
        "score_from": first,
        "nll": mean,
        "ppl": math.exp(mean),
        "nll_per_token": [None if loss != loss else loss for loss in trace.nll.tolist()],
        "seconds": trace.seconds,
        "cache_bytes": trace.cache_bytes,
    }


def check_scored(arguments: argparse.Namespace, tokens: int) -> None:
    """Refuse numbers that leave no loss to take the mean of."""
    if tokens < 2:
        raise ValueError("One token has no loss, because nothing predicts it; give at least two tokens.")
    if arguments.score_from >= tokens:
        raise ValueError(
            f"--score-from {arguments.score_from} must be from 0 to {tokens - 1}, the last of {tokens} tokens."
        )


def keep(arguments: argparse.Namespace) -> dict[str, Any]:
    trace = replayed(arguments)
    layer, head = arguments.layer, arguments.head
    if not (0 <= layer < trace.layers and 0 <= head < trace.kv_heads):
        raise ValueError(
            f"There is no layer {layer}, KV head {head}: this model has layers 0–{trace.layers - 1} and KV heads "
            f"0–{trace.kv_heads - 1}."
        )
    return {"kept": [trace.kept(layer, head, step).tolist() for step in range(trace.tokens)]}


def attention(arguments: argparse.Namespace) -> dict[str, Any]:
    trace = replayed(arguments, check_late, measure=True, sinks=arguments.sinks)
    late = slice(trace.prompt_tokens, None)
    names = ("sink_mass", "entropy", "mean_distance")
    return {name: np.nanmean(getattr(trace, name)[..., late], -1).tolist() for name in names}


def reach(arguments: argparse.Namespace) -> dict[str, Any]:
    pattern = parse_pattern(arguments.pattern)
    check_least(arguments)
    for name, most in REACH_MOST.items():
        if getattr(arguments, name) > most:
            raise ValueError(f"--{name} {getattr(arguments, name)} is too large; choose a number from 1 to {most}.")
    from kvviz.measures.reach import reach as sets
    from kvviz.measures.reach import span

    if len(getattr(pattern, "dilation", ())) > 1:
        heads = plural(len(pattern.dilation), "KV head")  # type: ignore[attr-defined]
        print(
            f"Counted for {heads}, one for each dilation; a model with fewer uses the first ones only.", file=sys.stderr
        )

    found = sets(pattern, arguments.layers, arguments.tokens)
    rows = [
        {"layer": depth, "positions": int(positions.sum()), "span": span(positions)}
        for depth, positions in enumerate(found, 1)
    ]
    return {"layers": rows}


def check_late(arguments: argparse.Namespace, tokens: int) -> None:
    """Refuse numbers that leave no query to take the mean over."""
    if tokens == 1 or arguments.prompt_tokens == tokens:
        raise ValueError(
            "No query follows the prompt: give two tokens or more, and --prompt-tokens below their number."
        )


def generate(arguments: argparse.Namespace) -> dict[str, Any]:
    from kvviz.generate import check_sampling
    from kvviz.generate import generate as run

    setup = setup_of(arguments)
    check_least(arguments)
    check_sampling(arguments.max_new_tokens, arguments.temperature, arguments.top_p, arguments.seed)
    prompt = token_ids_of(arguments.token_ids) if arguments.token_ids is not None else prompt_of(arguments.prompt)
    loaded = load_model(arguments)
    ids = prompt if isinstance(prompt, list) else encoded(loaded, prompt, sys.maxsize)
    trace = run(
        loaded.model,
        ids,
        setup,
        arguments.max_new_tokens,
        stop_at=stop_tokens(loaded),
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


def stop_tokens(loaded: Loaded) -> set[int]:
    """The end-of-text tokens that the model itself names."""
    named = loaded.model.generation_config.eos_token_id
    several = named if isinstance(named, list) else [named]
    return {token for token in (*several, loaded.tokenizer.eos_token_id) if token is not None}


def replayed(arguments: argparse.Namespace, *checks: Check, **measures: Any) -> Trace:
    """The run that nll, keep and attention look at, after the checks of all and of the one command."""
    checks = (check_prompt, *checks)
    setup = setup_of(arguments)
    check_least(arguments)
    check_block(arguments)
    if arguments.tokens is not None:  # there will be no more than these, and none of the checks is easier with fewer
        check_all(checks, arguments, arguments.tokens)
    text = read_text(arguments.text)
    loaded = load_model(arguments)  # slow, and so the last of what may be refused
    from kvviz.replay import BLOCK, replay

    ids = encoded(loaded, text, arguments.tokens or sys.maxsize)
    check_all(checks, arguments, len(ids))
    say_if_short(len(ids), arguments.tokens)
    trace = replay(
        loaded.model,
        ids,
        setup,
        prompt_tokens=arguments.prompt_tokens,
        block=1 if arguments.stepwise else arguments.block or BLOCK,
        progress=lambda share: say(f"{share:4.0%}", end="\r") if sys.stderr.isatty() else None,
        **measures,
    )
    say_notes(trace)
    return trace

"""What each command computes: parsed options in, a JSON-ready answer out. ``__main__`` parses and prints."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kvviz.counting import plural
from kvviz.experiment import SETUP_PARSERS, Setup, parse_setup
from kvviz.knobs import Choice, describe_knobs
from kvviz.patterns import parse_pattern
from kvviz.policies import POLICIES
from kvviz.texts import decoded

if TYPE_CHECKING:
    from kvviz.models import Loaded
    from kvviz.trace import Trace

Check = Callable[[argparse.Namespace, int], None]  # refuses options that do not fit a number of tokens

LEAST = {
    "tokens": 1,
    "layers": 1,
    "prompt_tokens": 1,
    "score_from": 0,
    "block": 1,
    "layer": 0,
    "head": 0,
    "sinks": 1,
    "max_new_tokens": 1,
    "temperature": 0,
    "seed": 0,
}
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


def check_all(checks: Iterable[Check], arguments: argparse.Namespace, tokens: int) -> None:
    for check in checks:
        check(arguments, tokens)


def check_block(arguments: argparse.Namespace) -> None:
    """Refuse two sizes of a block at once."""
    if arguments.stepwise and arguments.block not in (None, 1):
        raise ValueError(
            f"--stepwise means blocks of one token and --block {arguments.block} does not; leave one of them out."
        )


def check_least(arguments: argparse.Namespace) -> None:
    """Refuse numbers that are too small whatever the text."""
    for name, least in LEAST.items():
        value = getattr(arguments, name, None)
        if value is not None and value < least:
            raise ValueError(f"--{name.replace('_', '-')} {value} must be at least {least}.")


def check_prompt(arguments: argparse.Namespace, tokens: int) -> None:
    """Refuse a prompt longer than the text."""
    if arguments.prompt_tokens is not None and arguments.prompt_tokens > tokens:
        raise ValueError(f"--prompt-tokens {arguments.prompt_tokens} must be from 1 to {tokens}, the number of tokens.")


def say_if_short(tokens: int, wanted: int | None) -> None:
    if wanted is not None and tokens < wanted:
        say(f"The text has only {'1 token; it is' if tokens == 1 else f'{tokens} tokens; all of them are'} used.")


def encoded(loaded: Loaded, text: str, limit: int) -> list[int]:
    """The text's first tokens; blanks alone are some to most tokenizers and none to a few."""
    from kvviz import tokens

    ids = tokens.encode(loaded.tokenizer, text, limit)
    if not ids:
        raise ValueError("This model's tokenizer makes no token of the text; give at least one word.")
    return ids


def setup_of(arguments: argparse.Namespace) -> Setup:
    return parse_setup({name: getattr(arguments, name) for name in SETUP_PARSERS})


def load_model(arguments: argparse.Namespace) -> Loaded:
    from kvviz.models import load

    return load(arguments.model, dtype=arguments.dtype, device=arguments.device)


def read_bytes(path: str) -> bytes:
    if path == "-" and sys.stdin is None:
        raise ValueError("There is no standard input to read; give a file instead of -.")
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"The file {path!r} cannot be read: {error.strerror}.") from None


def read_text(path: str) -> str:
    """UTF-8, newlines untouched, without a byte order mark at the start."""
    return decoded(read_bytes(path), "Standard input" if path == "-" else f"The file {path!r}")


def prompt_of(words: str) -> str:
    """The prompt as it was typed; bytes that are no UTF-8 reach Python as surrogates."""
    return decoded(words.encode("utf-8", "surrogateescape"), "The prompt")


def token_ids_of(path: str) -> list[int]:
    """A JSON list of whole numbers."""
    content = read_bytes(path)
    try:
        ids = json.loads(content)
    except (ValueError, RecursionError):
        ids = None
    if not isinstance(ids, list) or not ids or not all(type(i) is int and 0 <= i < 2**31 for i in ids):
        raise ValueError(f"{path!r} must hold one JSON list of whole token numbers from 0 up, such as [1, 2, 3].")
    return ids


def say(message: str, end: str = "\n") -> None:
    print(message, file=sys.stderr, end=end)


def say_notes(trace: Trace) -> None:
    for note in trace.notes:
        say(note)

"""What each command computes: parsed options in, a JSON-ready answer out. ``__main__`` parses and prints."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kvviz.experiment import SETUP_PARSERS, Setup, parse_setup
from kvviz.knobs import Choice, describe_knobs
from kvviz.policies import POLICIES

if TYPE_CHECKING:
    from kvviz.models import Loaded
    from kvviz.trace import Trace


def policies(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    return [describe(cls) for cls in POLICIES.values()]


def describe(cls: type[Choice]) -> dict[str, Any]:
    return {"name": cls.name(), "title": cls.title, "source": cls.source, "knobs": describe_knobs(cls)}


def nll(arguments: argparse.Namespace) -> dict[str, Any]:
    trace = replayed(arguments)
    first = check_score_from(arguments.score_from, trace.tokens)
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


def check_score_from(score_from: int, tokens: int) -> int:
    """The first token whose loss counts; token 0 has none, nothing predicts it."""
    if tokens < 2:
        raise ValueError("The text is one token long: there is nothing to predict. Give at least two tokens.")
    if not 0 <= score_from < tokens:
        raise ValueError(f"--score-from {score_from} must be from 0 to {tokens - 1}, the last of {tokens} tokens.")
    return max(1, score_from)


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
    if arguments.sinks < 1:
        raise ValueError(f"--sinks {arguments.sinks} must be at least 1.")
    trace = replayed(arguments, measure=True, sinks=arguments.sinks)
    late = slice(trace.prompt_tokens, None)
    if trace.prompt_tokens == trace.tokens:
        raise ValueError("No query follows the prompt: choose --prompt-tokens smaller than the number of tokens.")
    names = ("sink_mass", "entropy", "mean_distance")
    return {name: np.nanmean(getattr(trace, name)[..., late], -1).tolist() for name in names}


def generate(arguments: argparse.Namespace) -> dict[str, Any]:
    setup = setup_of(arguments)
    ids_given = token_ids_of(arguments.token_ids) if arguments.token_ids is not None else None
    loaded = load_model(arguments)
    from kvviz import tokens
    from kvviz.generate import generate as run

    ids = ids_given if ids_given is not None else tokens.encode(loaded.tokenizer, arguments.prompt, sys.maxsize)
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


def replayed(arguments: argparse.Namespace, **measures: Any) -> Trace:
    """The run that nll, keep and attention look at."""
    setup = setup_of(arguments)
    text = read_text(arguments.text)
    if arguments.tokens is not None and arguments.tokens < 1:
        raise ValueError(f"--tokens {arguments.tokens} must be at least 1.")
    loaded = load_model(arguments)
    from kvviz import tokens
    from kvviz.replay import replay

    ids = tokens.encode(loaded.tokenizer, text, arguments.tokens or sys.maxsize)
    if arguments.tokens is not None and len(ids) < arguments.tokens:
        say(f"The text has only {len(ids)} tokens; all of them are used.")
    trace = replay(
        loaded.model,
        ids,
        setup,
        prompt_tokens=arguments.prompt_tokens,
        block=1 if arguments.stepwise else arguments.block,
        progress=lambda share: say(f"{share:4.0%}", end="\r") if sys.stderr.isatty() else None,
        **measures,
    )
    say_notes(trace)
    return trace


def setup_of(arguments: argparse.Namespace) -> Setup:
    return parse_setup({name: getattr(arguments, name) for name in SETUP_PARSERS})


def load_model(arguments: argparse.Namespace) -> Loaded:
    from kvviz.models import load

    return load(arguments.model, dtype=arguments.dtype, device=arguments.device)


def read_bytes(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"The file {path!r} cannot be read: {error.strerror}.") from None


def read_text(path: str) -> str:
    """UTF-8, newlines untouched."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path!r} is not UTF-8 text (byte {error.start}); save it as UTF-8 and try again.") from None


def token_ids_of(path: str) -> list[int]:
    """A JSON list of whole numbers."""
    content = read_bytes(path)
    try:
        ids = json.loads(content)
    except (ValueError, RecursionError):
        ids = None
    if not isinstance(ids, list) or not all(type(i) is int for i in ids):
        raise ValueError(f"{path!r} must hold one JSON list of whole token numbers, such as [1, 2, 3].")
    return ids


def say(message: str, end: str = "\n") -> None:
    print(message, file=sys.stderr, end=end)


def say_notes(trace: Trace) -> None:
    for note in trace.notes:
        say(note)

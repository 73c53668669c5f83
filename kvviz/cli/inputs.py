"""What the commands read and refuse: options, texts, token numbers. Every refusal is one sentence."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvviz.choices.setup import SETUP_PARSERS, Setup, parse_setup
from kvviz.choices.texts import decoded
from kvviz.models import DEFAULT_MODEL

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from kvviz.models import Loaded
    from kvviz.run.trace import Trace

Check = Callable[[argparse.Namespace, int], None]  # refuses options that do not fit a number of tokens

LIMIT_SECONDS = "KVVIZ_LIMIT_SECONDS"
ALWAYS_TOKENS = 20_000  # so many are always read

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
    "seeds": 1,
    "repeats": 1,
    "edit": 0,
    "remove": 0,
    "window": 1,
    "shift": 0,
    "width": 1,
    "depth": 1,
    "blocks": 1,
}


class RefusedModel(ValueError):
    """A model that may not be shown, with all that its try found as ``answer``."""

    def __init__(self, reason: str, answer: dict[str, Any]) -> None:
        super().__init__(reason)
        self.answer = answer


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
    from kvviz.models import tokens

    ids = tokens.encode(loaded.tokenizer, text, limit)
    if not ids:
        raise ValueError("This model's tokenizer makes no token of the text; give at least one word.")
    return ids


def setup_of(arguments: argparse.Namespace) -> Setup:
    return parse_setup({name: getattr(arguments, name) for name in SETUP_PARSERS})


def load_model(arguments: argparse.Namespace) -> Loaded:
    from kvviz.models import load

    return load(arguments.model, dtype=arguments.dtype, device=arguments.device)


def model_for(arguments: argparse.Namespace, setup: Setup) -> Loaded:
    """The model, tried with what the setup asks of it; ValueError with the reason where it may not be shown so.

    The default model is known by the hash of its weights, and kvviz's tests try it.
    """
    loaded = load_model(arguments)
    refuse_setup(arguments, loaded, setup)
    if arguments.model != DEFAULT_MODEL:
        say(loaded.origin)
    return loaded


def refuse_setup(arguments: argparse.Namespace, loaded: Loaded, setup: Setup) -> None:
    """ValueError with the reason where the model's try has shown that it cannot run this setup."""
    if arguments.model == DEFAULT_MODEL:
        return
    from kvviz.analysis.trial import trial_of

    if reason := trial_of(loaded).refusal(setup):
        raise ValueError(reason)


def refuse_long(model: PreTrainedModel, runs: Iterable[tuple[Setup, int]]) -> None:
    """ValueError with the estimated time where these readings, (setup, tokens) each, would take longer than allowed.

    ``KVVIZ_LIMIT_SECONDS`` (an hour unless set) is the limit; a few readings of a text of ordinary length are not
    asked, since an answer takes a moment too.
    """
    from kvviz.analysis import estimate

    refuse_work(model, sum(estimate.work(setup, count) for setup, count in runs))


def refuse_work(model: PreTrainedModel, tokens: float) -> None:
    """The same for what is worth so many plainly read tokens."""
    from kvviz.analysis import estimate

    if tokens > ALWAYS_TOKENS:
        cure = f"ask for fewer or shorter texts, or set {LIMIT_SECONDS} to more seconds"
        estimate.refuse_long(model, tokens, limit_seconds(), cure)


def limit_seconds() -> float:
    """How long one command may take; ValueError if the environment has no number."""
    word = os.environ.get(LIMIT_SECONDS, "3600")
    if not word.isascii() or not word.isdigit() or not int(word):
        raise ValueError(f"{LIMIT_SECONDS}={word!r} must be a whole number of seconds, at least 1.")
    return float(word)


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
    if sys.stderr is not None:  # print would turn to standard output instead
        print(message, file=sys.stderr, end=end)


def say_share(share: float) -> None:
    """Progress, on a terminal alone."""
    if sys.stderr is not None and sys.stderr.isatty():
        say(f"{share:4.0%}", end="\r")


def say_notes(trace: Trace) -> None:
    for note in trace.notes:
        say(note)

"""The Quality page's own settings."""

from __future__ import annotations

import os
from dataclasses import dataclass

from kvviz.choices.experiment import TOKENS_LIMIT
from kvviz.choices.setup import read_setup, spelled
from kvviz.choices.words import number_parser, one_of, yes_or_no
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PageSettings, linked

PARTS = {
    "words": "What was forgotten?",
    "tradeoff": "Trade-off",
    "sweep": "Budget sweep",
    "limits": "Where it fails",
    "needles": "Needles",
    "ways": "Four ways",
    "native": "Built for windows?",
}
# the tasks by name, with the words of the menu; the tasks themselves import what takes seconds
TASK_WORDS = {
    "passkey": "one number in a long text",
    "multikey": "one of four numbers",
    "pairs": "one line of a list",
    "pairs_asked_first": "one line of a list, asked for before it",
    "induction": "random tokens, repeated",
    "questions": "two questions after the prompt",
    "stream": "nothing: the loss along a text",
}
STREAM_WORDS = {"reference": "the Python language reference", "own": "the text on the left"}
STREAM_ENV, STREAM_TOKENS, STREAM_LEAST, STREAM_MOST = "KVVIZ_STREAM_TOKENS", 2048, 16, 8192
ADDED_LIMIT = 6  # with A and B eight lines, which is what a figure bears
LENGTHS = ("256", "512", "1024", "256/512", "256/512/1024")
TRADES = {"loss": "loss added", "needles": "needles found"}


def stream_limit() -> int:
    """How long a stream may be on this server, as the person running it says; a bad word counts as the default."""
    word = os.environ.get(STREAM_ENV, "")
    is_number = word.isascii() and word.isdigit() and len(word) < 10
    return min(max(int(word), STREAM_LEAST), STREAM_MOST) if is_number else STREAM_TOKENS


def usual_tokens() -> int:
    """The length of the stream when nothing is said."""
    return min(STREAM_TOKENS, stream_limit())


def parse_stream_tokens(word: str) -> int:
    """The length of the stream; ValueError naming the limit and who may change it."""
    tokens = number_parser("stream_tokens", STREAM_LEAST, 10**9)(word)
    if tokens > stream_limit():
        raise ValueError(
            f"This server reads at most {stream_limit():,} tokens of a stream, not {tokens:,}; whoever runs it can "
            f"allow up to {STREAM_MOST:,} with {STREAM_ENV}."
        )
    return tokens


def separate(words: str) -> list[str]:
    """The setups of a list as they are spelled."""
    return [line.strip() for line in words.split(";") if line.strip()]


def parse_added(words: str) -> str:
    """Setups spelled as elsewhere with ``;`` between them, in their full spelling; ValueError in one sentence."""
    lines = separate(words)
    if len(lines) > ADDED_LIMIT:
        raise ValueError(
            f"{len(lines)} setups beside A and B are too many to tell apart; choose at most {ADDED_LIMIT}."
        )
    return "; ".join(spelled(read_setup(line)) for line in lines)


@dataclass(frozen=True)
class QualitySettings(PageSettings):
    """What the stream is and under which further setups it is read, which part is open, and what the parts ask."""

    part: str = part_setting("quality_part", PARTS)
    added: str = linked("setups", "", parse_added)
    stream_text: str = linked("stream_text", "reference", one_of("stream", tuple(STREAM_WORDS)))
    stream_tokens: int = linked("stream_tokens", STREAM_TOKENS, parse_stream_tokens)
    every: bool = linked("every_token", False, yes_or_no("every_token"))
    predicted: int | None = linked("predicted", None, number_parser("predicted", 1, TOKENS_LIMIT))
    trade: str = linked("trade", "loss", one_of("trade-off", tuple(TRADES)))
    task: str = linked("task", "passkey", one_of("task", tuple(TASK_WORDS)))
    lengths: str = linked("needle_tokens", "256", one_of("needle_tokens", LENGTHS))
    seeds: int = linked("needle_seeds", 2, number_parser("needle_seeds", 1, 4))

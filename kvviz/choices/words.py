"""Single words of a URL or a command: each is parsed, or refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvviz import knobs


def one_of(kind: str, choices: tuple[str, ...]) -> Callable[[str], str]:
    """A parser that accepts exactly these words."""

    def parse_word(word: str) -> str:
        if word not in choices:
            raise ValueError(f"There is no {kind} {word!r}; {knobs.suggestion(word, choices)}")
        return word

    return parse_word


def number_parser(name: str, low: int, high: int) -> Callable[[str], int]:
    def parse_number(word: str) -> int:
        if not (word.isascii() and word.isdigit() and len(word) <= 18 and low <= int(word) <= high):
            raise ValueError(f"{name}={word!r} must be a whole number from {low} to {high}.")
        return int(word)

    return parse_number


def yes_or_no(name: str) -> Callable[[str], bool]:
    """A parser of True and False, as Python writes them."""
    parse = one_of(f"value of {name}", ("True", "False"))
    return lambda word: parse(word) == "True"


def attempt(
    notes: list[str], values: dict[str, Any], name: str, parser: Callable[[str], Any], word: str, whose: str = ""
) -> None:
    """Put the parsed word into ``values``, or a sentence into ``notes``."""
    try:
        values[name] = parser(word)
    except ValueError as error:
        notes.append(f"{whose}{error} The default is used instead.")

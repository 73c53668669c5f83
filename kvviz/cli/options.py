"""Options that several commands share, and how their words are read."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from kvviz.choices.setup import SETUP_PARSERS, Setup
from kvviz.models import DEFAULT_MODEL


def whole(word: str) -> int:
    """The whole number that ``word`` spells in plain digits; int() takes 1_0 too."""
    digits = word.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number such as 256")
    if len(digits) > 18:
        raise argparse.ArgumentTypeError(f"{word!r} is too large; give a number of at most 18 digits")
    return int(word)


def number(word: str) -> float:
    """The number that ``word`` spells."""
    try:
        return float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number such as 0.7") from None


def wholes(word: str) -> tuple[int, ...]:
    """The whole numbers that ``word`` spells, with / between them."""
    return tuple(whole(part.strip()) for part in word.split("/"))


def add_setup_options(command: argparse.ArgumentParser) -> None:
    add_choice_options(command, SETUP_PARSERS)
    add_model_options(command)


def add_choice_options(command: argparse.ArgumentParser, names: Iterable[str]) -> None:
    plain = Setup().words()
    for name in names:
        command.add_argument(f"--{name}", default=plain[name], metavar="SPEC", help=f"default {plain[name]}")


def add_model_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", default=DEFAULT_MODEL, metavar="NAME")
    command.add_argument("--dtype", default=None, help="float32, bfloat16, float16 or float64")
    command.add_argument("--device", default=None, help="cuda, mps or cpu")


def add_text_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--text", required=True, metavar="FILE", help="UTF-8, a byte order mark left out; - reads standard input"
    )
    command.add_argument("--tokens", type=whole, default=None, metavar="N", help="only the first N tokens")
    command.add_argument("--prompt-tokens", type=whole, default=None, metavar="P", help="default: half the tokens")
    command.add_argument("--score-from", type=whole, default=1, metavar="K", help="first predicted token that counts")
    command.add_argument("--block", type=whole, default=None, metavar="R", help="rows computed at once, default 256")
    command.add_argument("--stepwise", action="store_true", help="blocks of one, with tensors that really shrink")

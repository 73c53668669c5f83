"""Settings and counts in plain words, for headlines and titles; the exact spelling is in the address bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from kvviz.choices.setup import SETUP_PARSERS, Setup
from kvviz.knobs import Choice, spell_value
from kvviz.text.counting import plural

COUNTS_FROM_ONE = "(counted from 1, as the papers do; other texts here count from 0)"
__all__ = [
    "COUNTS_FROM_ONE",
    "choice_words",
    "joined",
    "listed",
    "plain",
    "plural",
    "scientific",
    "setup_words",
    "side_words",
    "spans",
]


def choice_words(choice: Choice) -> str:
    """``StreamingLLM, budget 64, sinks 4``: the title up to its colon, and the knobs."""
    values = {field.name: getattr(choice, field.name) for field in fields(choice)}
    knobs = [f"{name.replace('_', ' ')} {value_words(value)}" for name, value in values.items() if value != ()]
    return ", ".join([choice.title.partition(":")[0], *knobs])


def value_words(value: object) -> str:
    """Yes and no as on and off, lists as they are spelled."""
    return ("on" if value else "off") if isinstance(value, bool) else spell_value(value)


def setup_words(setup: Setup) -> str:
    """The policy, and whatever else differs from the ordinary."""
    ordinary = Setup()
    chosen = {kind: getattr(setup, kind) for kind in SETUP_PARSERS}
    others = [kind_words(k, v) for k, v in chosen.items() if k != "policy" and v != getattr(ordinary, k)]
    return " · ".join([choice_words(setup.policy), *others])


def kind_words(kind: str, chosen: Choice | str) -> str:
    """``pattern Sliding window, window 8``, ``off-by-one softmax``."""
    return f"{chosen.replace('_', '-')} {kind}" if isinstance(chosen, str) else f"{kind} {choice_words(chosen)}"


def side_words(side: str, setup: Setup) -> str:
    """``A: Full cache``, as figures and columns are titled."""
    return f"{side}: {setup_words(setup)}"


def listed(numbers: Sequence[int]) -> str:
    """``[4, 5, 6, 7]``, as the papers write a cache."""
    return f"[{', '.join(map(str, numbers))}]"


def joined(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def spans(numbers: Sequence[int]) -> str:
    """``1–4, 9–12``: ascending numbers as runs."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs)


def scientific(value: float) -> str:
    """``4.6·10⁻⁵`` for small numbers, three digits for others."""
    if value == 0 or value >= 0.001:
        return f"{value:.3g}"
    digits, _, power = f"{value:.1e}".partition("e")
    return f"{digits}·10{str(int(power)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def plain(sentence: str) -> str:
    """Text for Markdown with its signs made harmless: tokens may hold $, *, [ or <."""
    for sign in "\\`*_{}[]<>()#+-.!|$~:":
        sentence = sentence.replace(sign, "\\" + sign)
    return sentence

"""What several fields share: whole numbers as people type them, and what an emptied file field still means."""

from __future__ import annotations

import re
from typing import Any

from kvviz.ui.shell.state import kept, setting


def whole_number(
    place: Any, label: str, key: str, default: Any, low: int, high: int, *, step: int = 1, **looks: Any
) -> Any:
    """A number field; one that was cleared means its default, which it shows in grey.

    Fractions are refused in a sentence: Streamlit's own field for integers cuts 20.7 to 20.
    """
    limits = {"min_value": float(low), "max_value": float(high), "step": float(step), "format": "%g", "value": None}
    looks = {"placeholder": None if default is None else f"{default}", **looks}
    number = setting(key, place.number_input(label, **limits, **looks, **kept(key, default)))
    if number is None:
        return default
    if float(number).is_integer():
        return int(number)
    name = label.partition(":")[0]
    raise ValueError(f"{name}={number:g} must be a whole number from {low} to {high}.")


def still_in_use(what: str, content: str) -> str:
    """What to say when the file field is empty, after a change of page or because somebody took the file out."""
    return f"The {what} given before ({len(content):,} characters) is still in use: upload another, or choose above."


def numbers_in(name: str, listed: str) -> tuple[int, ...]:
    """The whole numbers a person listed, whatever stands between them; the knob checks their range."""
    parts = [part for part in re.split(r"[\s/,;]+", listed) if part]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise ValueError(f"{name}={listed!r} must be whole numbers joined by /, such as 1/2/4.")
    return tuple(map(int, parts))

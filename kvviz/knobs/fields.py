"""Knobs: the fields of a frozen dataclass that a person may set, each with its range and its label.

Policies, patterns and storages are such dataclasses; menus, sliders and documentation are made from them.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

BUDGET_LIMIT = 2**20  # far above any text; a budget above the text is accepted, one above this is a slip of the hand


def knob(default: int, label: str, low: int, high: int) -> Any:
    """A whole-number field with the range its slider shows; both ends are allowed values."""
    return dataclasses.field(default=default, metadata={"label": label, "low": low, "high": high})


def fitted(fit: Callable[[int], int], label: str, low: int, high: int) -> Any:
    """A whole-number field that, left out, is fitted to the budget: ``fit(budget)``."""
    return dataclasses.field(default=None, metadata={"label": label, "low": low, "high": high, "fit": fit})


def switch(default: bool, label: str) -> Any:
    """A yes/no field, spelled 0 or 1."""
    return dataclasses.field(default=default, metadata={"label": label, "low": 0, "high": 1})


def word(default: str, label: str, choices: tuple[str, ...]) -> Any:
    """A field that is one of a few words."""
    return dataclasses.field(default=default, metadata={"label": label, "low": None, "high": None, "choices": choices})


def numbers(default: tuple[int, ...], label: str, low: int, high: int) -> Any:
    """A list of whole numbers, spelled with slashes: ``1/2/4``; an empty one is spelled with nothing."""
    return dataclasses.field(default=default, metadata={"label": label, "low": low, "high": high})


@dataclasses.dataclass(frozen=True)
class Choice:
    """Something a person picks by name and sets by knobs. It holds no state beyond its knobs."""

    kind: ClassVar[str] = "choice"
    title: ClassVar[str] = ""
    source: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is None and "fit" in field.metadata:
                # frozen for everybody else; spelled out from here on, so that a copy does not depend on the default
                object.__setattr__(self, field.name, field.metadata["fit"](self.budget))  # type: ignore[attr-defined]
            check_knob(self, field)

    @classmethod
    def name(cls) -> str:
        """The word it is spelled with: the class name in snake case."""
        return "".join(("_" if i and c.isupper() else "") + c.lower() for i, c in enumerate(cls.__name__))


def check_knob(owner: Choice, field: dataclasses.Field[Any]) -> None:
    """Refuse a value of the wrong type or out of the knob's range, naming both."""
    value, low, high = getattr(owner, field.name), field.metadata["low"], field.metadata["high"]
    what = f"{owner.name()}: {field.name}={spell_value(value)}"
    if "choices" in field.metadata:
        if value not in field.metadata["choices"]:
            raise ValueError(f"{what} is not known; {suggestion(str(value), field.metadata['choices'])}")
    elif isinstance(field.default, bool):
        if not isinstance(value, bool):
            raise ValueError(f"{what} must be 0 or 1.")
    elif isinstance(field.default, tuple):
        if not isinstance(value, tuple) or not all(is_whole(part) and low <= part <= high for part in value):
            raise ValueError(f"{what} must be whole numbers from {low} to {high}, joined by / as in 1/2/4.")
        if field.default and not value:
            raise ValueError(f"{what} needs at least one whole number from {low} to {high}.")
    elif not is_whole(value):
        raise ValueError(f"{what} must be a whole number from {low} to {high}.")
    elif not low <= value <= high:
        raise ValueError(f"{what} is out of range; choose a whole number from {low} to {high}.")


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def spell_value(value: object) -> str:
    if isinstance(value, tuple):
        return "/".join(map(str, value))
    return str(int(value)) if isinstance(value, bool) else str(value)


def suggestion(word: str, choices: Iterable[str]) -> str:
    """``did you mean …? The choices are …``"""
    names = list(choices)
    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    listed = f"he choices are: {', '.join(names)}." if names else "here is none to set."
    return f"did you mean {close[0]!r}? T{listed}" if close else f"t{listed}"

"""The Exactness page's own settings."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.experiment import TOKENS_LIMIT
from kvviz.choices.words import number_parser, yes_or_no
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PageSettings, linked

PARTS = {
    "broken": "What breaks",
    "edit": "Edit a token",
    "mask": "The mask of a block",
    "removal": "Removed or silenced",
    "positions": "Positions after eviction",
}
MOST_SHIFT, MOST_WINDOW, MOST_BUDGET, MOST_SINKS, LONGEST_EDIT = 1024, 2048, 1024, 16, 40


def parse_edit(word: str) -> str:
    """What a token is replaced by; a few words at most."""
    if len(word) > LONGEST_EDIT:
        raise ValueError(
            f"The replacement of {len(word)} characters is too long for one token's place; give at most {LONGEST_EDIT}."
        )
    return word


def place(word: str, default: int | None) -> int | None:
    """A setting that names a position of the text."""
    found: int | None = linked(word, default, number_parser(word, 0, TOKENS_LIMIT))
    return found


def switch(word: str, default: bool = True) -> bool:
    found: bool = linked(word, default, yes_or_no(word))
    return found


@dataclass(frozen=True)
class ExactnessSettings(PageSettings):
    """Which conditions are broken and by how much, which part is open, and what the parts ask."""

    part: str = part_setting("exact_part", PARTS)
    prefix: bool = switch("break_prefix")
    weights: bool = switch("break_weights")
    positions: bool = switch("break_positions")
    rule: bool = switch("break_rule")
    dtype: bool = switch("break_dtype")
    replaced: int | None = place("break_at", None)  # None: an early one that the prefix has
    adapter: int = linked("break_percent", 2, number_parser("break_percent", 0, 100))
    shift: int = linked("break_shift", 1, number_parser("break_shift", 0, MOST_SHIFT))
    window: int = linked("break_window", 32, number_parser("break_window", 1, MOST_WINDOW))
    edited: int = linked("edit_at", 8, number_parser("edit_at", 0, TOKENS_LIMIT))
    edit: str = linked("edit_to", "", parse_edit)
    deletes: bool = switch("edit_deletes", False)
    removed: int = linked("remove_at", 0, number_parser("remove_at", 0, TOKENS_LIMIT))
    step: int | None = place("remove_step", None)
    budget: int = linked("number_budget", 64, number_parser("number_budget", 2, MOST_BUDGET))
    sinks: int = linked("number_sinks", 4, number_parser("number_sinks", 0, MOST_SINKS))
    slots_step: int | None = place("number_step", None)

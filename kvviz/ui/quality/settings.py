"""The Quality page's own settings."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.words import number_parser, one_of
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PageSettings, linked

PARTS = {
    "words": "What was forgotten?",
    "sweep": "Budget sweep",
    "needles": "Needles",
    "ways": "Four ways",
}
# the tasks by name, with the words of the menu; the tasks themselves import what takes seconds
TASK_WORDS = {
    "passkey": "one number in a long text",
    "multikey": "one of four numbers",
    "pairs": "one line of a list",
    "induction": "random tokens, repeated",
    "questions": "two questions after the prompt",
}


@dataclass(frozen=True)
class QualitySettings(PageSettings):
    """Which part is open, what the needles are, and how long their prompts."""

    part: str = part_setting("quality_part", PARTS)
    task: str = linked("task", "passkey", one_of("task", tuple(TASK_WORDS)))
    needle_tokens: int = linked("needle_tokens", 256, number_parser("needle_tokens", 220, 1024))

"""The Speed page's own settings."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.words import number_parser
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.runs import TOKENS_ON_A_PAGE
from kvviz.ui.shell.settings import PageSettings, linked

PARTS = {"work": "Reading and arithmetic", "report": "Run report"}
LEAST_TOKENS, LEAST_PROMPT, MOST_NEW, MOST_REPEATS = 64, 64, 256, 9


@dataclass(frozen=True)
class SpeedSettings(PageSettings):
    """How long the longest prompt is, what the report runs, and what is open."""

    part: str = part_setting("speed_part", PARTS)
    tokens: int = linked("speed_tokens", 1024, number_parser("speed_tokens", LEAST_TOKENS, TOKENS_ON_A_PAGE))
    prompt: int = linked("report_tokens", 512, number_parser("report_tokens", LEAST_PROMPT, TOKENS_ON_A_PAGE))
    new: int = linked("report_new", 32, number_parser("report_new", 2, MOST_NEW))
    repeats: int = linked("report_repeats", 3, number_parser("report_repeats", 1, MOST_REPEATS))

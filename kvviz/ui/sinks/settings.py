"""The Sinks page's own settings."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.words import number_parser
from kvviz.measures.sinks import SINKS
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PageSettings, linked

PARTS = {
    "text": "Along the text, by layer",
    "ablation": "Sink ablation",
    "sentences": "Averaged sentences",
    "norms": "Key and value norms",
}


@dataclass(frozen=True)
class SinksSettings(PageSettings):
    """How many first tokens count as sinks where their mass is measured, and what is open."""

    sinks: int = linked("sinks", SINKS, number_parser("sinks", 1, 8), always=True)
    part: str = part_setting("sinks_part", PARTS)

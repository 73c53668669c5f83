"""The Cache page's own settings."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PageSettings

PARTS = {
    "steps": "Step by step",
    "time": "Entries and bytes",
    "layers": "All layers",
    "scores": "Scores",
}


@dataclass(frozen=True)
class CacheSettings(PageSettings):
    """Which of the supporting figures are open."""

    part: str = part_setting("cache_part", PARTS)

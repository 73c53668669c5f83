"""The Sinks page's own setting."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.words import number_parser
from kvviz.measures.sinks import SINKS
from kvviz.ui.shell.settings import PageSettings, linked


@dataclass(frozen=True)
class SinksSettings(PageSettings):
    """How many first tokens count as sinks where their mass is measured."""

    sinks: int = linked("sinks", SINKS, number_parser("sinks", 1, 8), always=True)

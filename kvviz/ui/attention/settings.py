"""The Attention page's own settings, and the words for their values."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.words import number_parser, one_of
from kvviz.figures.scales import ScaleName
from kvviz.measures.attention import MEASURES
from kvviz.measures.sinks import SINKS
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PageSettings, linked

SCALES: dict[ScaleName, str] = {
    "log": "logarithmic",
    "linear": "linear 0–1",
    "no_sinks": f"first {SINKS} keys left out",
}
AVERAGES = {"head": "one head", "layer": "mean of the layer's heads"}
PARTS = {
    "heads": "Layers, heads, one query",
    "difference": "A − B",
    "seen": "Who sees whom",
    "agreement": "Do queries and heads agree?",
    "patterns": "Gallery of patterns",
}


@dataclass(frozen=True)
class AttentionSettings(PageSettings):
    """How the maps are drawn, and by what a layer and head are chosen."""

    scale: str = linked("scale", "log", one_of("scale", tuple(SCALES)), always=True)
    measure: str = linked("measure", next(iter(MEASURES)), one_of("measure", tuple(MEASURES)), always=True)
    average: str = linked("average", "head", one_of("average", tuple(AVERAGES)), always=True)
    # how many of the strongest keys are compared
    top_k: int = linked("top_k", 8, number_parser("top_k", 1, 64), always=True)
    part: str = part_setting("attention_part", PARTS)

"""The Precision page's own settings."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.words import number_parser, one_of
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PageSettings, linked

PARTS = {
    "channels": "Outlier channels",
    "worked": "One group, worked",
    "cost": "Loss and bytes",
    "needles": "Needles by bits",
}
BITS = {"int8": "int8", "int4": "int4", "int2": "int2"}
GROUPINGS = {"channel": "one channel of several keys", "token": "several channels of one key"}
# what is measured: title, unit on the axis, and what stands for "of attention" in a sentence
MEASURES = {
    "keys": "Keys",
    "scores": "Scores",
    "weights": "Attention weights",
    "output": "Output",
    "values": "Values",
}
MOST_GROUP, MOST_RESIDUAL, MOST_BLOCK, MOST_CHANNEL = 1024, 2048, 2047, 1023


@dataclass(frozen=True)
class PrecisionSettings(PageSettings):
    """What is coded and how, which error is mapped, which part is open, and which group is worked through."""

    part: str = part_setting("precision_part", PARTS)
    bits: str = linked("bits", "int4", one_of("number of bits", tuple(BITS)))
    measure: str = linked("error_of", "weights", one_of("error", tuple(MEASURES)))
    grouping: str = linked("key_groups", "channel", one_of("grouping of keys", tuple(GROUPINGS)))
    group: int = linked("bits_group", 32, number_parser("bits_group", 1, MOST_GROUP))
    residual: int = linked("bits_residual", 32, number_parser("bits_residual", 1, MOST_RESIDUAL))
    block: int = linked("bits_block", 1, number_parser("bits_block", 0, MOST_BLOCK))
    channel: int | None = linked("bits_channel", None, number_parser("bits_channel", 0, MOST_CHANNEL))

"""The Branches page's own settings."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.words import number_parser, one_of
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PageSettings, linked

PARTS = {
    "lengths": "Lengths accepted",
    "mask": "Tree mask",
    "slots": "Slots before and after",
    "equal": "Equal to plain decoding?",
    "cost": "What a tree costs",
}
DRAFTER_WORDS = {"lookup": "what followed the same words before", "layers": "the model's own first layers"}
MOST_NEW, MOST_WIDTH, MOST_DEPTH, MOST_LAYERS = 128, 16, 16, 255


@dataclass(frozen=True)
class BranchesSettings(PageSettings):
    """Who drafts how large a tree, how much is written, which step is shown and which part is open."""

    part: str = part_setting("branches_part", PARTS)
    drafter: str = linked("drafter", "lookup", one_of("drafter", tuple(DRAFTER_WORDS)))
    width: int = linked("draft_width", 4, number_parser("draft_width", 1, MOST_WIDTH))
    depth: int = linked("draft_depth", 4, number_parser("draft_depth", 1, MOST_DEPTH))
    layers: int = linked("draft_layers", 24, number_parser("draft_layers", 1, MOST_LAYERS))
    new: int = linked("draft_new", 32, number_parser("draft_new", 1, MOST_NEW))
    step: int | None = linked("draft_step", None, number_parser("draft_step", 0, MOST_NEW))

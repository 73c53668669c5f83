"""The Receptive field page's own settings."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.experiment import TOKENS_LIMIT
from kvviz.choices.words import number_parser, one_of
from kvviz.knobs import BUDGET_LIMIT
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PageSettings, linked

MEASURED = {"gradient": "gradient", "rollout": "attention rollout"}
PARTS = {
    "distance": "Influence against distance",
    "sublayers": "The parts of a layer",
    "calculator": "Calculator",
}
MOST_LAYERS, MOST_DILATION = 10_000, 4096


@dataclass(frozen=True)
class ReachSettings(PageSettings):
    """By what influence is measured, where the strongest path begins, and the calculator's numbers."""

    by: str = linked("reach_by", "gradient", one_of("measure of influence", tuple(MEASURED)))
    # None = as far away as the query can depend on
    path_from: int | None = linked("reach_from", None, number_parser("reach_from", 0, TOKENS_LIMIT))
    # of the calculator, as those below: Mistral 7B
    window: int = linked("reach_window", 4096, number_parser("reach_window", 1, BUDGET_LIMIT))
    layers: int = linked("reach_layers", 32, number_parser("reach_layers", 1, MOST_LAYERS))
    dilation: int = linked("reach_dilation", 1, number_parser("reach_dilation", 1, MOST_DILATION))
    part: str = part_setting("reach_part", PARTS)

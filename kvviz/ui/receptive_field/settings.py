"""The Receptive field page's own settings: how they are spelled in a URL, and what they are when nothing is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvviz.choices.experiment import TOKENS_LIMIT
from kvviz.choices.words import number_parser, one_of
from kvviz.knobs import BUDGET_LIMIT

MEASURED = ("gradient", "rollout")
MOST_LAYERS, MOST_DILATION = 10_000, 4096
REACH_DEFAULTS: dict[str, Any] = {
    "reach_by": MEASURED[0],
    "reach_from": None,  # where the strongest path begins; None = as far away as the query can depend on
    "reach_window": 4096,  # of the calculator, as those below: Mistral 7B
    "reach_layers": 32,
    "reach_dilation": 1,
}
REACH_LOOKS: dict[str, Callable[[str], Any]] = {
    "reach_by": one_of("measure of influence", MEASURED),
    "reach_from": number_parser("reach_from", 0, TOKENS_LIMIT),
    "reach_window": number_parser("reach_window", 1, BUDGET_LIMIT),
    "reach_layers": number_parser("reach_layers", 1, MOST_LAYERS),
    "reach_dilation": number_parser("reach_dilation", 1, MOST_DILATION),
}


def reach_words(looks: dict[str, Any]) -> dict[str, str]:
    """The settings that differ from the ordinary ones, as URL parameters, so that other pages' links stay short."""
    return {name: str(looks[name]) for name in REACH_LOOKS if looks[name] not in (None, REACH_DEFAULTS[name])}

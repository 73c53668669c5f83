"""Experiments for the Sinks page, and what to watch in each."""

from __future__ import annotations

from kvviz.choices.texts import DEFAULT_TEXT
from kvviz.ui.shell.settings import Example

EXAMPLES = (
    Example(
        "Take the sinks away",
        "A window of 64 against the full cache: without the first tokens every other weight grows. The sink ablation "
        "below the grids says what that costs.",
        {"text": DEFAULT_TEXT, "tokens": "256", "policy": "window:budget=64", "b_policy": "full"}
        | {"sinks_part": "ablation"},
    ),
    Example(
        "Let attention sum to less than 1",
        "Off-by-one softmax under A: the weights may sum to less than 1, but this model was not trained that way.",
        {"policy": "full", "softmax": "off_by_one", "b_policy": "full"},
    ),
    Example(
        "One sink is nearly enough",
        "Count only token 0 as the sink: it has most of the sink mass already.",
        {"policy": "streaming:budget=64,sinks=1", "b_policy": "streaming:budget=64,sinks=4", "sinks": "1"},
    ),
)

"""Experiments for the Sinks page, and what to watch in each."""

from __future__ import annotations

from kvviz.choices.texts import DEFAULT_TEXT
from kvviz.ui.shell.settings import Example

EXAMPLES = (
    Example(
        "Take the sinks away",
        "A window of 64 against the full cache: where the first tokens were, every other weight grows. Then read the "
        "experiment board.",
        {"text": DEFAULT_TEXT, "tokens": "256", "policy": "window:budget=64", "b_policy": "full"},
    ),
    Example(
        "Let attention abstain",
        "Softmax off by one under A: heads may give less than one in all, but this model never learnt to.",
        {"policy": "full", "softmax": "off_by_one", "b_policy": "full"},
    ),
    Example(
        "One sink is nearly enough",
        "Count only token 0 as the sink: most of the mass is there already.",
        {"policy": "streaming:budget=64,sinks=1", "b_policy": "streaming:budget=64,sinks=4", "sinks": "1"},
    ),
)

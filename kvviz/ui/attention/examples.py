"""Experiments for the Attention page, and what to watch in each."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example
from kvviz.ui.shell.state import HEAD, LAYER

EXAMPLES = (
    Example(
        "See a window at work",
        "Query 8 sees 5, 6, 7 and 8; query 9 sees 6 to 9; query 10 sees 7 to 10. Keys it cannot see are blank.",
        {"text": "toy", "tokens": "12", "policy": "window:budget=4", "b_policy": "full", "scale": "log"}
        | {"attention_part": "seen"},
    ),
    Example(
        "Attention on the first token",
        f"Layer {LAYER}, linear colour scale: one bright column at token 0, beside which all else looks like zero.",
        {"text": "story", "tokens": "256", "scale": "linear", "b_policy": "full"}
        | {"layer": str(LAYER), "head": str(HEAD)},
    ),
    Example(
        "Rows that need not sum to 1",
        "With the off-by-one softmax a row may sum to less than 1. Look at the row sums below the maps.",
        {"policy": "full", "softmax": "off_by_one", "b_policy": "full", "scale": "linear", "average": "head"},
    ),
)

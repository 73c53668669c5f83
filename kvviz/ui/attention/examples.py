"""Experiments for the Attention page, and what to watch in each."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example
from kvviz.ui.shell.state import HEAD, LAYER

EXAMPLES = (
    Example(
        "See a window at work",
        "Query 8 sees 5, 6, 7 and 8; query 9 sees 6 to 9; query 10 sees 7 to 10. What it cannot see is blank.",
        {"text": "toy", "tokens": "12", "policy": "window:budget=4", "b_policy": "full", "scale": "log"},
    ),
    Example(
        "The first token takes it all",
        f"Layer {LAYER}, linear colours: one bright column at token 0 swallows the rest.",
        {"text": "story", "tokens": "256", "scale": "linear", "b_policy": "full"}
        | {"layer": str(LAYER), "head": str(HEAD)},
    ),
    Example(
        "A head that may abstain",
        "Softmax off by one: rows need not sum to 1. Look at the row sums below the maps.",
        {"policy": "full", "softmax": "off_by_one", "b_policy": "full", "scale": "linear"},
    ),
)

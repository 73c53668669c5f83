"""Experiments for the Quality page, and what to watch in each."""

from __future__ import annotations

from kvviz.choices.texts import LONG_TEXT
from kvviz.ui.shell.settings import Example

EXAMPLES = (
    Example(
        "A window against its sinks",
        "512 tokens at 64 entries. Four first tokens beside the window repair most of what the window loses.",
        {"text": LONG_TEXT, "tokens": "512", "policy": "window:budget=64", "b_policy": "streaming:budget=64,sinks=4"}
        | {"quality_part": "sweep"},
    ),
    Example(
        "An evicted number cannot be found",
        "A stream may be endless, its memory is not: the needles of A that have left the cache are lost.",
        {"text": LONG_TEXT, "tokens": "256", "policy": "streaming:budget=64,sinks=4", "b_policy": "full"}
        | {"quality_part": "needles"},
    ),
    Example(
        "Re-computing the window",
        "A window that is read anew for each token loses little, and costs a forward pass a token.",
        {"text": LONG_TEXT, "tokens": "256", "policy": "window:budget=64", "b_policy": "full", "quality_part": "ways"},
    ),
)

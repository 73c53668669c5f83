"""Experiments for the Speed page, and what to watch in each."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example

EXAMPLES = (
    Example(
        "The full cache grows",
        "Steps under the full cache get slower with the length; with 64 entries they stay as they are.",
        {"policy": "streaming:budget=64,sinks=4", "b_policy": "full", "speed_tokens": "2048"},
    ),
    Example(
        "Fewer bytes need not be faster",
        "int4 reads a seventh of the bytes, and turning them back into numbers takes longer than reading them did.",
        {"policy": "full", "storage": "int4", "b_policy": "full", "speed_tokens": "1024"},
    ),
    Example(
        "Choosing costs time",
        "H2O looks at the attention of every step to choose what to keep; a window does not.",
        {"policy": "h2o:budget=64", "b_policy": "window:budget=64", "speed_tokens": "512"},
    ),
)

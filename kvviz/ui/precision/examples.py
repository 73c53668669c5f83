"""Experiments for the Precision page, and what to watch in each."""

from __future__ import annotations

from kvviz.choices.texts import LONG_TEXT
from kvviz.ui.shell.settings import Example

EXAMPLES = (
    Example(
        "Two bits are too few",
        "With four levels a number is off by a fifth of the attention in every layer; with sixteen by a few percent.",
        {"bits": "int2", "error_of": "weights", "key_groups": "channel", "precision_part": "cost"},
    ),
    Example(
        "Outliers spoil a shared scale",
        "A few channels of the keys are many times the others. Where they share a scale with channels of the same key, "
        "all of those lose their levels.",
        {"bits": "int4", "error_of": "keys", "key_groups": "token", "precision_part": "channels", "layer": "19"}
        | {"head": "0"},
    ),
    Example(
        "From numbers to codes and back",
        "One group: its minimum, its scale, a code for each number, and what comes back.",
        {"bits": "int2", "key_groups": "channel", "precision_part": "worked", "bits_block": "1"},
    ),
    Example(
        "Smaller groups, more scales",
        "Groups of 8 keep the error low, and their scales take more bytes than the codes.",
        {"bits": "int2", "bits_group": "8", "bits_residual": "32", "precision_part": "cost", "text": LONG_TEXT},
    ),
)

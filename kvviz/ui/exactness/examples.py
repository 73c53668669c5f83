"""Experiments for the Exactness page, and what to watch in each."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example

ALL = {f"break_{name}": "True" for name in ("prefix", "weights", "positions", "rule", "dtype")}
NONE = dict.fromkeys(ALL, "False")

EXAMPLES = (
    Example(
        "Everything as it was",
        "Two lines are left: float32 stays below the dotted line, where only the order of the sums differs; in "
        "bfloat16 the same two ways of reading differ a thousand times as much.",
        {**NONE, "exact_part": "mask"},
    ),
    Example(
        "One token too early",
        "The rest is read one position away from where the cache ends. Nothing else is wrong, and the answer changes.",
        {**NONE, "break_positions": "True", "break_shift": "1", "exact_part": "positions"},
    ),
    Example(
        "Edit the beginning",
        "One early token is another one. In layer 0 a single entry changes, above it every later one.",
        {**ALL, "break_at": "4", "exact_part": "edit", "edit_at": "4"},
    ),
    Example(
        "Silence the first token or remove it",
        "The first token says little and takes much weight. Removed, its weight falls on the others; silenced, it does "
        "not.",
        {**ALL, "exact_part": "removal", "remove_at": "0"},
    ),
)

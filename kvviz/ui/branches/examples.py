"""Experiments for the Branches page, and what to watch in each."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example

EXAMPLES = (
    Example(
        "A text that repeats itself",
        "What followed the same words before is often what comes next: whole branches are accepted.",
        {"text": "repeats", "drafter": "lookup", "draft_width": "4", "draft_depth": "8", "branches_part": "lengths"},
    ),
    Example(
        "Layers that guess",
        "The first 24 of 30 layers guess the next token about half of the time, and cost most of a forward themselves.",
        {"text": "story", "drafter": "layers", "draft_layers": "24", "draft_width": "4", "draft_depth": "3"}
        | {"branches_part": "lengths"},
    ),
    Example(
        "Too few layers",
        "Twelve layers know little of the answer: the tree is mostly dropped, and the text is still the same.",
        {"text": "story", "drafter": "layers", "draft_layers": "12", "draft_width": "4", "draft_depth": "3"}
        | {"branches_part": "slots"},
    ),
    Example(
        "Who sees whom",
        "Each row sees the cache, the last token and its own branch; between branches the weight is exactly 0.",
        {"drafter": "lookup", "draft_width": "4", "draft_depth": "4", "branches_part": "mask"},
    ),
)

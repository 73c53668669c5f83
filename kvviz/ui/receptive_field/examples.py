"""Experiments for the Receptive field page: the papers' own examples, and what to watch in each."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example

STORY = {"text": "story", "tokens": "256", "query": "255"}
EXAMPLES = (
    Example(
        "4 → 6 → 8: a relay over two layers",
        "Window 3: token 8 sees only 6, 7 and 8. Through two layers it depends on 4 too, because 6 has attended to 4.",
        {"text": "toy", "tokens": "12", "query": "7", "layer": "1", "policy": "window:budget=3", "b_policy": "full"}
        | {"reach_from": "3"},
    ),
    Example(
        "Five layers with a window of 32",
        "5 · 31 + 1 = 156 positions and not one more. How near is 99% of the measured influence?",
        {**STORY, "layer": "4", "policy": "window:budget=32", "b_policy": "full"},
    ),
    Example(
        "What dilation changes",
        "Every second of 64 positions: as many as a window of 32, over twice the span, and nothing at odd distances.",
        {**STORY, "layer": "2", "policy": "full", "pattern": "dilated:window=32,dilation=2"}
        | {"b_policy": "full", "b_pattern": "sliding:window=32"},
    ),
    Example(
        "One global token",
        "Every query sees position 0, whatever the window: the path from it has one hop.",
        {**STORY, "layer": "2", "policy": "full", "pattern": "global:window=16,tokens=0", "b_policy": "full"},
    ),
    Example(
        "A hybrid: one full layer in six",
        "Windows of 16, and full attention in layers 5, 11, …: there the reach grows to the whole text at once.",
        {**STORY, "layer": "11", "policy": "full", "pattern": "layered:window=16,full_every=6", "b_policy": "full"},
    ),
    Example(
        "A different dilation for each KV head",
        "Dilations 1, 4 and 16: the layer's mask is their union, dense near the query and sparse far from it.",
        {**STORY, "layer": "1", "policy": "full", "pattern": "dilated:window=6,dilation=1/4/16", "b_policy": "full"},
    ),
)

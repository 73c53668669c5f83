"""Experiments for the Receptive field page: the sources' own examples, and what to watch in each."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example

STORY = {"text": "story", "tokens": "256", "query": "255"}
EXAMPLES = (
    Example(
        "4 → 6 → 8: a relay over two layers",
        "Window 3: word 8 sees 6, 7 and 8 only. Through two layers it depends on 4 as well, because 6 has read 4.",
        {"text": "toy", "tokens": "12", "query": "7", "layer": "1", "policy": "window:budget=3", "b_policy": "full"}
        | {"reach_from": "3"},
    ),
    Example(
        "Layer 5 under window 32",
        "5 · 31 + 1 = 156 positions and not one more. How near is 99 % of what is measured?",
        {**STORY, "layer": "4", "policy": "window:budget=32", "b_policy": "full"},
    ),
    Example(
        "What dilation changes",
        "Every second of 64 positions: as many as a window of 32, over twice the span, and nothing at odd distances.",
        {**STORY, "layer": "2", "policy": "full", "pattern": "dilated:window=32,dilation=2"}
        | {"b_policy": "full", "b_pattern": "sliding:window=32"},
    ),
    Example(
        "One token that all can see",
        "Position 0 is global: one hop from anywhere, whatever the window. The path from it has one hop.",
        {**STORY, "layer": "2", "policy": "full", "pattern": "global:window=16,tokens=0", "b_policy": "full"},
    ),
    Example(
        "A hybrid: one full layer in six",
        "Windows of 16, and layers 5, 11, … see everything: the reach jumps to the whole text at once.",
        {**STORY, "layer": "11", "policy": "full", "pattern": "layered:window=16,full_every=6", "b_policy": "full"},
    ),
    Example(
        "Another dilation for each head",
        "Heads with 1, 4 and 16: the layer's mask is the union of them, fine near by and coarse far away.",
        {**STORY, "layer": "1", "policy": "full", "pattern": "dilated:window=6,dilation=1/4/16", "b_policy": "full"},
    ),
)

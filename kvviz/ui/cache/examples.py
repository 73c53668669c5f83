"""Experiments for the Cache page: the papers' own examples, and what to watch in each."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example

TOY = {"text": "toy", "tokens": "12"}
EXAMPLES = (
    Example(
        "A window of 4 slides over twelve words",
        "Step to token 8: 4 leaves, the cache is [5, 6, 7, 8]. Then 9: [6, 7, 8, 9].",
        {**TOY, "policy": "window:budget=4", "b_policy": "full"},
    ),
    Example(
        "4 sinks and 4 recent tokens",
        "At token 12 the cache is [1, 2, 3, 4, 9, 10, 11, 12]: the middle has gone, the start has not.",
        {**TOY, "policy": "streaming:budget=8,sinks=4", "b_policy": "window:budget=8"},
    ),
    Example(
        "A ring of 4 slots",
        "Token i lies in slot i mod 4 and overwrites what was there; the same tokens as the window of 4.",
        {**TOY, "policy": "rolling:budget=4", "b_policy": "window:budget=4"},
    ),
    Example(
        "Sinks or more recent tokens",
        "Both hold 64 tokens. Compare their loss on the Start page.",
        {"text": "story", "tokens": "256", "policy": "streaming:budget=64,sinks=4", "b_policy": "window:budget=64"},
    ),
    Example(
        "Random eviction",
        "Every layer and head draws its own set: change the layer and look again.",
        {"text": "story", "tokens": "256", "policy": "random:budget=64,seed=0", "b_policy": "window:budget=64"},
    ),
    Example(
        "Raw sums favour old tokens",
        "H2O with raw sums against sums divided by the queries that could see the key: read the sentence under Scores.",
        {
            "text": "story",
            "tokens": "256",
            "policy": "h2o:budget=64,recent=16,normalise=0",
            "b_policy": "h2o:budget=64,recent=16,normalise=1",
        },
    ),
    Example(
        "A budget above the text",
        "Nothing is evicted: this is exactly the full cache, and the page says so.",
        {"text": "story", "tokens": "128", "policy": "window:budget=512", "b_policy": "full"},
    ),
)

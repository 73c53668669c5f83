"""Experiments for the Cache page: the papers' own examples, and what to watch in each."""

from __future__ import annotations

from kvviz.ui.shell.settings import Example

TOY = {"text": "toy", "tokens": "12"}
EXAMPLES = (
    Example(
        "A window of 4 slides over twelve words",
        "Step to token 8: token 4 is evicted and the cache is [5, 6, 7, 8]. At token 9 it is [6, 7, 8, 9].",
        {**TOY, "policy": "window:budget=4", "b_policy": "full", "cache_part": "steps"},
    ),
    Example(
        "4 sinks and 4 recent tokens",
        "At token 12 the cache is [1, 2, 3, 4, 9, 10, 11, 12]: the middle is evicted, the start is not.",
        {**TOY, "policy": "streaming:budget=8,sinks=4", "b_policy": "window:budget=8"},
    ),
    Example(
        "A ring of 4 slots",
        "Token i is written to slot i mod 4, over the token that was there; the same tokens stay as in a window of 4.",
        {**TOY, "policy": "rolling:budget=4", "b_policy": "window:budget=4"},
    ),
    Example(
        "Sinks or more recent tokens",
        "Both hold 64 tokens. Compare their loss on the Start page.",
        {"text": "story", "tokens": "256", "policy": "streaming:budget=64,sinks=4", "b_policy": "window:budget=64"},
    ),
    Example(
        "Random eviction",
        "Every layer and KV head keeps a random set of its own: change the layer and look again.",
        {"text": "story", "tokens": "256", "policy": "random:budget=64,seed=0", "b_policy": "window:budget=64"},
    ),
    Example(
        "Raw sums favour old tokens",
        "H2O with raw sums against sums divided by the number of queries that could see the key: read the sentence "
        "under Scores.",
        {
            "text": "story",
            "tokens": "256",
            "policy": "h2o:budget=64,recent=16,normalise=0",
            "b_policy": "h2o:budget=64,recent=16,normalise=1",
            "cache_part": "scores",
        },
    ),
    Example(
        "A budget larger than the text",
        "Nothing is evicted: this is exactly the full cache, and the page says so.",
        {"text": "story", "tokens": "128", "policy": "window:budget=512", "b_policy": "full"},
    ),
)

"""Policies to try on the landing page, most against the full cache, and what to watch."""

from __future__ import annotations

from kvviz.choices.texts import DEFAULT_TEXT
from kvviz.ui.shell.settings import Example

STORY = {"text": DEFAULT_TEXT, "tokens": "256", "b_policy": "full"}
EXAMPLES = (
    Example(
        "4 sinks and the 60 latest",
        "Against the 64 latest, in as much cache: the 4 first tokens, kept for good, make the loss lower.",
        {**STORY, "policy": "streaming:budget=64,sinks=4", "b_policy": "window:budget=64"},
    ),
    Example(
        "The 64 latest alone",
        "As many tokens, but the first ones leave: the loss per token shows what that costs.",
        {**STORY, "policy": "window:budget=64"},
    ),
    Example(
        "What received most attention",
        "H2O keeps heavy hitters from all over the text beside the latest tokens; each KV head has its own.",
        {**STORY, "policy": "h2o:budget=64"},
    ),
    Example(
        "Throw dice",
        "As many tokens again, at random: mind the loss.",
        {**STORY, "policy": "random:budget=64,seed=0"},
    ),
    Example(
        "Choose once, when the prompt ends",
        "SnapKV holds the whole prompt, drops all but 64 at its end, and keeps every token that follows.",
        {**STORY, "policy": "snapkv:budget=64"},
    ),
)

"""Questions to begin with: each is answered by a page with settings of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kvviz.ui.shell.state import HEAD, LAYER


@dataclass(frozen=True)
class Question:
    """A link to the page of that title, and the URL parameters that differ from the ordinary ones."""

    page: str
    label: str
    change: Mapping[str, str]


TOY = {"text": "toy", "tokens": "12"}
QUESTIONS = (
    Question(
        "Cache",
        "Which tokens does a sliding window evict?",
        {"policy": "window:budget=64", "b_policy": "full"},
    ),
    Question(
        "Cache",
        "What do four sinks change?",
        {"policy": "streaming:budget=64,sinks=4", "b_policy": "window:budget=64"},
    ),
    Question(
        "Cache",
        "How does a cache [4, 5, 6, 7] become [5, 6, 7, 8]?",
        {**TOY, "policy": "window:budget=4", "b_policy": "full"},
    ),
    Question(
        "Cache",
        "Where does the ring buffer put token i?",
        {**TOY, "policy": "rolling:budget=4", "b_policy": "window:budget=4"},
    ),
    Question(
        "Attention",
        "Which tokens does a late token attend to?",
        {"policy": "full", "b_policy": "streaming:budget=64,sinks=4", "layer": str(LAYER), "head": str(HEAD)},
    ),
    Question(
        "Attention",
        "What if attention weights may sum to less than 1?",
        {"policy": "full", "softmax": "off_by_one", "b_policy": "full", "scale": "linear"},
    ),
)

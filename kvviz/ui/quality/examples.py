"""Experiments for the Quality page, and what to watch in each."""

from __future__ import annotations

from kvviz.choices.texts import LONG_TEXT
from kvviz.ui.shell.settings import Example

SHORT = {"setups": "", "stream_tokens": "512", "stream_text": "reference"}  # what lies below the stream is to be seen
EXAMPLES = (
    Example(
        "How many sinks?",
        "Six lines, all but the full cache with 256 entries: the window (A) grows worse as soon as the first tokens "
        "have left it, at token 256. One sink repairs most of that; two, four and eight add little.",
        {"policy": "window:budget=256", "b_policy": "streaming:budget=256,sinks=1", "quality_part": "words"}
        | {"setups": "; ".join([*(f"streaming:budget=256,sinks={sinks}" for sinks in (2, 4, 8)), "full"])}
        | {"stream_tokens": "1536", "stream_text": "reference"},
    ),
    Example(
        "An evicted number cannot be found",
        "A stream may be endless, its memory is not: A has forgotten every number that is not among its latest tokens.",
        {"policy": "streaming:budget=64,sinks=4", "b_policy": "full", "quality_part": "needles", "task": "passkey"}
        | {"needle_tokens": "256", **SHORT},
    ),
    Example(
        "What stands in the middle",
        "The sinks and the latest tokens (A) miss what stands between them, whatever it says. SnapKV (C) keeps "
        "what the end of the prompt, the question, looks at; H2O (B) chooses before it knows the question.",
        {"policy": "streaming:budget=64,sinks=4", "b_policy": "h2o:budget=64", "quality_part": "needles"}
        | {
            "task": "passkey",
            "needle_tokens": "256",
            **SHORT,
            "setups": "snapkv:budget=64,observe=8,kernel=13,pooling=max",
        },
    ),
    Example(
        "Fitting is not remembering",
        "Setups that save about as many bytes find few or all of the numbers: to fit and to remember are two tests.",
        {"policy": "streaming:budget=64,sinks=4", "b_policy": "full", "quality_part": "tradeoff", "trade": "needles"}
        | SHORT,
    ),
    Example(
        "Re-computing the window",
        "A window that is read anew for each token loses little, and costs a pass over the window for each token.",
        {"text": LONG_TEXT, "tokens": "192", "policy": "window:budget=32", "b_policy": "full", "quality_part": "ways"}
        | SHORT,
    ),
)

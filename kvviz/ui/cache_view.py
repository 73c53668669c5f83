"""What the Cache page says in words, and the tables behind its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from kvviz.figures.lifetimes import Codes, role_codes
from kvviz.figures.series import Series
from kvviz.figures.tabular import csv_of
from kvviz.ui.runs import Run
from kvviz.ui.state import View

ROLE_WORDS = {"sink": "sinks", "recent": "of the latest", "other": "others", "heavy": "heavy hitters"}
TOY = {"text": "toy", "tokens": "12"}
IDEAS = (
    (
        "A window of 4 slides over twelve words",
        "Step to token 8: 4 leaves, the cache is [5, 6, 7, 8]. Then 9: [6, 7, 8, 9].",
        {**TOY, "policy": "window:budget=4", "b_policy": "full"},
    ),
    (
        "4 sinks and 4 recent tokens",
        "At token 12 the cache is [1, 2, 3, 4, 9, 10, 11, 12]: the middle has gone, the start has not.",
        {**TOY, "policy": "streaming:budget=8,sinks=4", "b_policy": "window:budget=8"},
    ),
    (
        "A ring of 4 slots",
        "Token i lies in slot i mod 4 and overwrites what was there; the same tokens as the window of 4.",
        {**TOY, "policy": "rolling:budget=4", "b_policy": "window:budget=4"},
    ),
    (
        "Sinks or the same room for recent tokens",
        "Both hold 64 tokens. Compare their loss on the Start page.",
        {"text": "story", "tokens": "256", "policy": "streaming:budget=64,sinks=4", "b_policy": "window:budget=64"},
    ),
    (
        "Random eviction",
        "Every layer and head draws its own set: change the layer and look again.",
        {"text": "story", "tokens": "256", "policy": "random:budget=64,seed=0", "b_policy": "window:budget=64"},
    ),
    (
        "A budget above the text",
        "Nothing is evicted: this is exactly the full cache, and the page says so.",
        {"text": "story", "tokens": "128", "policy": "window:budget=512", "b_policy": "full"},
    ),
)


def place(view: View, run: Run) -> tuple[int, int]:
    """The layer and KV head that the sidebar's layer and query head mean in this model."""
    layers, kv_heads = run.trace.layers, run.trace.kv_heads
    group = query_head_count(run) // kv_heads
    return min(view.layer, layers - 1), min(view.head // group, kv_heads - 1)


def query_head_count(run: Run) -> int:
    assert run.trace.sink_mass is not None
    return int(run.trace.sink_mass.shape[1])


def query_heads(run: Run, kv_head: int) -> str:
    """The query heads that share a KV head, such as ``3–5``."""
    group = query_head_count(run) // run.trace.kv_heads
    first, last = kv_head * group, (kv_head + 1) * group - 1
    return str(first) if first == last else f"{first}–{last}"


def headline(run: Run, layer: int, head: int) -> str:
    """How many tokens are held after the last step, and why."""
    trace, last = run.trace, run.trace.tokens - 1
    held = trace.kept(layer, head, last)
    roles = Counter(trace.setup.policy.role_of(int(position), last) for position in held)
    parts = [f"{count} {ROLE_WORDS.get(role, role)}" for role, count in roles.items()]
    evicted = trace.tokens - len(held)
    why = f": {' and '.join(parts)}" if evicted else ", nothing has been evicted"
    return (
        f"After token {last + run.count_from}, layer {layer}, KV head {head} holds {len(held)} of {trace.tokens} tokens"
        f"{why} ({trace.setup})."
    )


def roles(run: Run) -> Codes:
    """(T, T) role codes of the policy, row = step."""
    return role_codes(run.trace.setup.policy.role_of, run.trace.tokens)


def lifetimes_csv(run: Run, layer: int) -> Callable[[], str]:
    """One row a token: the step at which each KV head of the layer lost it; T = still held."""

    def text() -> str:
        heads = [f"evicted_at, KV head {h} (T = {run.trace.tokens}: still held)" for h in range(run.trace.kv_heads)]
        return csv_of(run.trace.evicted_at[layer].T, run.labels, heads)

    return text


def series_csv(lines: Sequence[Series], run: Run) -> Callable[[], str]:
    """One row a step, one column a line."""

    def text() -> str:
        return csv_of(np.stack([values for _, _, values in lines], 1), run.labels, [label for label, _, _ in lines])

    return text

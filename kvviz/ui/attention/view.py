"""What the Attention page says in words, and what its controls change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.figures.scales import ScaleName
from kvviz.measures.overlap import mean_map
from kvviz.measures.sinks import SINKS
from kvviz.models.heads import kv_head_of
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import setup_words, spans

Floats = NDArray[np.floating]

CELLS = 256  # a longer text shares cells: three maps of 512 are more than a page should weigh
FEW_TOKENS = 24  # up to so many it is written out who may see whom
SCALE_WORDS: dict[ScaleName, str] = {
    "log": "logarithmic",
    "linear": "linear 0–1",
    "no_sinks": f"first {SINKS} keys left out",
}
AVERAGE_WORDS = {"head": "one head", "layer": "mean of the layer's heads"}
MEASURES = {
    "sink_mass": f"sink mass: share of attention on the first {SINKS} tokens",
    "recent_mass": "recent mass: share of attention on the latest 16 tokens",
    "entropy": "entropy: 1 = spread evenly over all keys",
    "mean_distance": "mean distance: 1 = as far back as possible",
}
IDEAS = (
    (
        "See a window at work",
        "Query 8 sees 5, 6, 7 and 8; query 9 sees 6 to 9; query 10 sees 7 to 10. What it cannot see is blank.",
        {"text": "toy", "tokens": "12", "policy": "window:budget=4", "b_policy": "full", "scale": "log"},
    ),
    (
        "The first token takes it all",
        "Layer 14, linear colours: one bright column at token 0 swallows the rest.",
        {"text": "story", "tokens": "256", "layer": "14", "head": "3", "scale": "linear", "b_policy": "full"},
    ),
    (
        "A head that may abstain",
        "Softmax off by one: rows need not sum to 1. Look at the row sums below the maps.",
        {"policy": "full", "softmax": "off_by_one", "b_policy": "full", "scale": "linear"},
    ),
)


def layer_and_head(view: View, run: Run) -> tuple[int, int]:
    """The sidebar's layer and query head, moved into the model's range."""
    assert run.trace.sink_mass is not None
    layers, heads, _ = run.trace.sink_mass.shape
    return min(view.layer, layers - 1), min(view.head, heads - 1)


def map_of(run: Run, layer: int, head: int, average: str) -> Floats:
    """The map of one head, or the mean of its layer's heads; (Q, T), NaN = not in the cache or not visible."""
    maps = run.trace.maps
    return mean_map(heads_of(run, layer)) if average == "layer" else maps[layer, head]


def heads_of(run: Run, layer: int) -> list[Floats]:
    """The maps of all query heads of a layer."""
    return [run.trace.maps[place] for place in sorted(run.trace.maps) if place[0] == layer]


def query_of(view: View, run: Run) -> int:
    """The chosen query, or the last one."""
    last = run.trace.tokens - 1
    return last if view.query is None else min(view.query, last)


def headline(run: Run, weights: Floats, layer: int, head: int | None, query: int) -> str:
    """Which key the chosen query looks at most, and how much; ``weights`` (T,), head None = the mean over heads."""
    if not np.isfinite(weights).any():
        return (
            f"Token {quoted(run, query)} was left out: re-computation reads a sample of the positions of a long text."
        )
    key = int(np.nanargmax(weights))
    return (
        f"Token {quoted(run, query)} in layer {layer}, {'mean of all heads' if head is None else f'head {head}'}, "
        f"gives {weights[key]:.0%} of its attention to "
        f"{'itself' if key == query else 'token ' + quoted(run, key)} (policy A: {setup_words(run.trace.setup)})."
    )


def quoted(run: Run, position: int) -> str:
    """``147 ‘␣window’``."""
    return f"{position + run.count_from} ‘{run.texts[position]}’"


def seen_by(run: Run, layer: int, head: int) -> str:
    """One line a query: the keys it may see, as runs."""
    seen = np.isfinite(run.trace.maps[layer, head])
    first = run.count_from
    return "\n".join(
        f"query {query + first:2} sees {spans((np.flatnonzero(row) + first).tolist())}"
        for query, row in enumerate(seen)
    )


def query_words(run: Run, layer: int, head: int, query: int) -> str:
    """Who asks, through which KV head, and how many keys it could see."""
    assert run.trace.sink_mass is not None
    kv_head = kv_head_of(head, run.trace.sink_mass.shape[1], run.trace.kv_heads)
    seen = int(np.isfinite(run.trace.maps[layer, head][query]).sum())
    return (
        f"Policy A, layer {layer}, query head {head} (reads KV head {kv_head}). The query at position "
        f"{query + run.count_from} sees {seen} of {query + 1} keys. Click a token to make it the query."
    )


def row_sums(maps: Sequence[Floats]) -> str:
    """Whether rows sum to one: they must, unless the softmax may abstain."""
    words = []
    for name, weights in zip("AB", maps, strict=True):
        sums = np.nansum(weights[np.isfinite(weights).any(axis=1)], axis=1)
        words.append(f"{name}: {sums.min():.4f} to {sums.max():.4f}")
    return f"Row sums, smallest to largest. {' · '.join(words)}. Blank cells are not in the cache or not visible."


def overview(run: Run, measure: str) -> tuple[Floats, str]:
    """(L, A) means over the queries after the prompt, as shares of the largest possible value, and their name."""
    trace = run.trace
    series = getattr(trace, measure)
    late = slice(min(trace.prompt_tokens, trace.tokens - 1), None)
    if measure.endswith("mass"):
        return np.nanmean(series[..., late], -1), measure.replace("_", " ")
    queries = np.arange(trace.tokens)[late]
    most = np.log(queries + 1) if measure == "entropy" else queries
    share = series[..., late] / np.maximum(most, 1e-9)
    return np.nanmean(np.clip(share, 0, 1), -1), measure.replace("_", " ")


def choose_place(layer: int, head: int) -> None:
    """The picker's answer, into the sidebar's fields."""
    st.session_state.update(layer=layer, head=head)


def choose_query(query: int) -> None:
    """The strip's answer."""
    st.session_state["query"] = query

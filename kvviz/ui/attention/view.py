"""What the Attention page says in words, and what its controls change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.measures.attention import Measure
from kvviz.measures.overlap import mean_map
from kvviz.models.heads import kv_head_of
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import setup_words, spans

Floats = NDArray[np.floating]

CELLS = 256  # a longer text shares cells: three maps of 512 are more than a page should weigh
LIST_HEIGHT = 480  # pixels of the list of who sees whom, which scrolls


@dataclass(frozen=True)
class Place:
    """Where one looks: layer, query head and query, moved into what model and text have."""

    layer: int
    head: int
    query: int


def place_of(view: View, run: Run) -> Place:
    return Place(*layer_and_head(view, run), query_of(view, run))


def named(head: int, average: str) -> int | None:
    """The head, or None where its layer's mean is shown."""
    return head if average == "head" else None


def place_words(place: Place, average: str) -> str:
    """``layer 14, head 3``."""
    return f"layer {place.layer}, {f'head {place.head}' if average == 'head' else 'mean of its heads'}"


def layer_and_head(view: View, run: Run) -> tuple[int, int]:
    """The sidebar's layer and query head, moved into the model's range."""
    return min(view.layer, run.trace.layers - 1), min(view.head, run.trace.query_heads - 1)


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


def query_notes(view: View, run: Run) -> list[str]:
    """A sentence where the text has no such query."""
    asked, shown = view.query, query_of(view, run)
    return [] if asked in (None, shown) else [f"The text has no position {asked}; its last token is shown."]


def headline(run: Run, weights: Floats, layer: int, head: int | None, query: int) -> str:
    """Which key the chosen query looks at most, and how much; ``weights`` (T,), head None = the mean over heads."""
    if not np.isfinite(weights).any():
        return f"Token {quoted(run, query)} was not computed: re-computation takes a sample of a long text's positions."
    key = int(np.nanargmax(weights))
    return (
        f"Token {quoted(run, query)} in layer {layer}, {'mean of all heads' if head is None else f'head {head}'}, "
        f"gives {weights[key]:.0%} of its attention to "
        f"{'itself' if key == query else 'token ' + quoted(run, key)} (policy A: {setup_words(run.trace.setup)})."
    )


def quoted(run: Run, position: int) -> str:
    """``147 ‘␣window’``."""
    return f"{position + run.count_from} ‘{run.texts[position]}’"


def seen_by(run: Run, weights: Floats) -> str:
    """One line a query: the keys it may see, as runs; ``weights`` (Q, T), NaN = not seen."""
    first, wide = run.count_from, len(str(run.trace.tokens))
    return "\n".join(
        f"query {query + first:{wide}} sees {spans((np.flatnonzero(row) + first).tolist())}"
        for query, row in enumerate(np.isfinite(weights))
    )


def query_words(run: Run, weights: Floats, place: Place, average: str) -> str:
    """Who asks, through which KV head, and how many keys it could see; ``weights`` (Q, T) of the map shown."""
    kv_head = kv_head_of(place.head, run.trace.query_heads, run.trace.kv_heads)
    who = f"query head {place.head} (reads KV head {kv_head})" if average == "head" else "mean of all query heads"
    seen = int(np.isfinite(weights[place.query]).sum())
    return (
        f"Policy A, layer {place.layer}, {who}. The query at position {place.query + run.count_from} sees {seen} of "
        f"{place.query + 1} keys{'' if average == 'head' else ' through at least one head'}. Click a token to make it "
        "the query."
    )


def row_sums(maps: Sequence[Floats]) -> str:
    """Whether rows sum to one: they must, unless the softmax is off by one."""
    words = []
    for name, weights in zip("AB", maps, strict=True):
        sums = np.nansum(weights[np.isfinite(weights).any(axis=1)], axis=1)
        words.append(f"{name}: {sums.min():.4f} to {sums.max():.4f}")
    said = f"Smallest and largest row sum. {' · '.join(words)}."
    return f"{said} Blank: not in the cache, or hidden by the pattern."


def overview(run: Run, measure: Measure) -> tuple[Floats, str]:
    """(L, A) means over the queries after the prompt, as shares of the largest possible value, and their name."""
    trace = run.trace
    late = slice(min(trace.prompt_tokens, trace.tokens - 1), None)
    shares = measure.shares(trace.measures[measure.name][..., late], np.arange(trace.tokens)[late].astype(float))
    return np.nanmean(shares, -1), measure.title.partition(":")[0]


def choose_place(layer: int, head: int) -> None:
    """The picker's answer, into the sidebar's fields."""
    st.session_state.update(layer=layer, head=head)


def choose_query(query: int) -> None:
    """The strip's answer."""
    st.session_state["query"] = query

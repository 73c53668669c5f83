"""Which words became hard, and which tokens that A no longer holds B looked at for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.figures.bars import bars
from kvviz.models.heads import kv_head_of
from kvviz.ui.quality.common import has_losses
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.words import joined, plain

HARDEST, LOOKED_AT = 8, 3


@dataclass(frozen=True)
class Hard:
    """A token that A predicts worse than B."""

    position: int
    a_loss: float  # nats
    b_loss: float
    gone: list[tuple[int, float]]  # positions that A no longer holds, with B's weight on them, mean over the heads

    @property
    def added(self) -> float:
        return self.a_loss - self.b_loss


def draw(a: Run, b: Run, layer: int) -> None:
    """The tokens after the prompt that lost most, and what was looked at for them."""
    if not (has_losses(a.trace) and has_losses(b.trace)):
        st.info("No token comes after the prompt: end the prompt earlier to see which words become hard.")
        return
    hard = hardest(a, b, layer)
    if not hard:
        st.info("A predicts no token after the prompt worse than B, so nothing that matters was forgotten.")
        return
    st.markdown(plain(words(a, hard, layer)), help=meaning("loss", "layer"))
    names, added = [a.labels[one.position] for one in hard], [one.added for one in hard]
    title = "The words that became hardest"
    show(drawn(bars, names, added, unit="nats", axis="loss added under A", title=title), "hardest-words")
    st.dataframe([row(a, one, layer) for one in hard], hide_index=True)


def hardest(a: Run, b: Run, layer: int) -> list[Hard]:
    """The tokens after the prompt whose loss grew most from B to A, largest first; only those that grew."""
    first = a.trace.prompt_tokens
    added = np.nan_to_num(a.trace.nll - b.trace.nll, nan=0.0)[first - 1 :]
    places = np.argsort(-added, kind="stable")[:HARDEST] + first
    return [
        Hard(int(i), float(a.trace.nll[i - 1]), float(b.trace.nll[i - 1]), looked_at(a, b, layer, int(i) - 1))
        for i in places
        if added[i - first] > 0
    ]


def looked_at(a: Run, b: Run, layer: int, query: int) -> list[tuple[int, float]]:
    """The positions that got most of B's attention in this layer among those that A no longer shows its query."""
    weight = gone_weight(a, b, layer, query)
    places = np.argsort(-weight, kind="stable")[:LOOKED_AT]
    return [(int(j), float(weight[j])) for j in places if weight[j] > 0.005]


def gone_weight(a: Run, b: Run, layer: int, query: int) -> NDArray[np.floating]:
    """B's weight on each position before the query where A's head has evicted it, mean over the query heads, (T,)."""
    heads = [head for (place, head) in b.trace.maps if place == layer]
    found = np.zeros(query + 1)
    for head in heads:
        kv_head = kv_head_of(head, a.trace.query_heads, a.trace.kv_heads)
        is_gone = a.trace.evicted_at[layer, kv_head, : query + 1] <= query
        found += np.where(is_gone, np.nan_to_num(b.trace.maps[layer, head][query, : query + 1]), 0)
    return found / max(1, len(heads))


def words(a: Run, hard: list[Hard], layer: int) -> str:
    """The hardest word and what was forgotten for it."""
    worst = hard[0]
    start = (
        f"Token {a.labels[worst.position]} became hardest: {worst.a_loss:.3g} nats under A, {worst.b_loss:.3g} under B."
    )
    if not worst.gone:
        return start + f" In layer {layer} B looked at nothing for it that A no longer holds; try another layer."
    seen = joined([f"{a.labels[place]} ({weight:.0%})" for place, weight in worst.gone])
    return start + f" For it B looked in layer {layer}, among others, at what A has evicted: {seen}."


def row(a: Run, one: Hard, layer: int) -> dict[str, str | float]:
    seen = ", ".join(f"{a.labels[place]} ({weight:.0%})" for place, weight in one.gone)
    return {
        "token": a.labels[one.position],
        "loss under A (nats)": round(one.a_loss, 3),
        "loss under B (nats)": round(one.b_loss, 3),
        f"evicted under A, seen by B in layer {layer}": seen or "–",
    }

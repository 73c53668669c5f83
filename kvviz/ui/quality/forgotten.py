"""Why a word became hard: which tokens that A has evicted B looked at for it, layer by layer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.choices.experiment import Experiment
from kvviz.figures import Drawing
from kvviz.figures.gone import gone_map
from kvviz.models.heads import kv_head_of
from kvviz.ui.quality.common import has_losses, model_for
from kvviz.ui.quality.scored import NOTHING, text_key
from kvviz.ui.quality.settings import QualitySettings
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.page import Page
from kvviz.ui.shell.runs import Key, Run
from kvviz.ui.shell.state import View, kept_setting
from kvviz.ui.shell.words import joined, plain, setup_words

HARDEST, COLUMNS, NAMED = 8, 16, 3
SEEN = 0.005  # a smaller weight is not named
Floats = NDArray[np.floating]


def draw(page: Page) -> None:
    """The token to look at, its losses, and what was looked at for it that A has evicted."""
    a, b = page.runs()
    if not (has_losses(a.trace) and has_losses(b.trace)):
        st.info(NOTHING)
        return
    hard = hardest(a, b)
    position = choose(a, b, hard)
    st.markdown(plain(loss_words(a, b, position)), help=meaning("loss", "layer"))
    if position == 0 or not gone_for(a, position - 1).any():
        st.info("A still held everything when it predicted this token, so nothing was forgotten for it.")
        return
    if found := waiting.extra(*looked_at_job(page.view, b, position - 1), st.empty()):
        gone = gone_weight(a, found.value, position - 1)
        st.markdown(plain(gone_words(a, gone)), help=meaning("query"))
        show(figure(a, gone), "forgotten-by-layer")


def choose(a: Run, b: Run, hard: list[int]) -> int:
    """A menu of all predicted tokens, those that lost most first; the worst one unless somebody chooses."""
    rest = [place for place in range(1, a.trace.tokens) if place not in hard]
    places = [*hard, *rest]
    link = kept_setting(QualitySettings, "predicted")
    if st.session_state[link["key"]] not in places:
        st.session_state[link["key"]] = None
    chosen = st.selectbox(
        "The predicted token (those that became hardest first)",
        places,
        index=None,
        format_func=lambda place: choice_words(a, b, place),
        placeholder=choice_words(a, b, places[0]),
        **link,
    )
    return places[0] if chosen is None else int(chosen)


def choice_words(a: Run, b: Run, place: int) -> str:
    return f"{a.labels[place]}  ({a.trace.nll[place - 1] - b.trace.nll[place - 1]:+.2f} nats under A)"


def hardest(a: Run, b: Run) -> list[int]:
    """Positions after the prompt whose loss grew most from B to A, largest first; only those that grew."""
    first = a.trace.prompt_tokens
    added = np.nan_to_num(a.trace.nll - b.trace.nll, nan=0.0)[first - 1 :]
    places = np.argsort(-added, kind="stable")[:HARDEST]
    return [int(place) + first for place in places if added[place] > 0]


def gone_for(a: Run, query: int) -> NDArray[np.bool_]:
    """Which tokens up to the query A no longer shows it, (L, H, query + 1)."""
    gone: NDArray[np.bool_] = a.trace.evicted_at[:, :, : query + 1] <= query
    return gone


def gone_weight(a: Run, weights: Floats, query: int) -> Floats:
    """B's weight on each token where A's head has evicted it, mean over the query heads, (L, query + 1).

    ``weights`` (L, A, query + 1) are those of B's query.
    """
    heads = [kv_head_of(head, a.trace.query_heads, a.trace.kv_heads) for head in range(a.trace.query_heads)]
    mean: Floats = np.where(gone_for(a, query)[:, heads], np.nan_to_num(weights), 0).mean(1)
    return mean


def looked_at_job(view: View, b: Run, query: int) -> tuple[Key, Callable[[Job], Result]]:
    """Where the query looks under B in every layer and head."""
    experiment: Experiment = view.experiment
    setup, ids, prompt = b.trace.setup, b.trace.token_ids.tolist(), b.trace.prompt_tokens

    def compute(job: Job) -> Result:
        from kvviz.analysis.query_attention import query_weights

        loaded = model_for(experiment.model, [setup], job)
        doing = f"{loaded.card.title} looks back from {b.labels[query]} under {setup_words(setup)}"
        tell = {"progress": lambda share: job.report(doing, share), "is_cancelled": job.is_unwanted}
        weights = query_weights(loaded.model, ids, setup, query, prompt_tokens=prompt, **tell)  # type: ignore[arg-type]
        return Result(weights, weights.nbytes)

    return ("looked-at", *text_key(experiment), str(setup), query), compute


def figure(a: Run, gone: Floats) -> Drawing:
    """The evicted tokens that got most, in the order of the text, by layer."""
    best = np.sort(np.argsort(-gone.mean(0), kind="stable")[:COLUMNS])
    best = best[gone[:, best].max(0) > 0]
    labels, title = [a.labels[place] for place in best], "What B looked at and A has evicted, by layer"
    return drawn(gone_map, np.ascontiguousarray(gone[:, best]), labels, title=title)


def loss_words(a: Run, b: Run, place: int) -> str:
    """What the token cost under both, as a loss and as a probability."""
    costs = {side: float(run.trace.nll[place - 1]) for side, run in (("A", a), ("B", b))}
    told = [f"{cost:.3g} nats under {side} (probability {np.exp(-cost):.3g})" for side, cost in costs.items()]
    return f"Token {a.labels[place]}: {joined(told)}."


def gone_words(a: Run, gone: Floats) -> str:
    """How much of B's attention fell on what A has evicted, in which layer most, and on which tokens."""
    by_layer = gone.sum(1)
    layer = int(by_layer.argmax())
    places = np.argsort(-gone[layer], kind="stable")[:NAMED]
    seen = [f"{a.labels[place]} ({gone[layer, place]:.0%})" for place in places if gone[layer, place] > SEEN]
    start = (
        f"For it B gave {by_layer.mean():.0%} of its attention, mean over the layers, to tokens that A no longer holds"
    )
    if not seen:
        return f"{start}; no single one of them got as much as {SEEN:.1%}."
    return f"{start}; most in layer {layer} ({by_layer[layer]:.0%}): {joined(seen)}."

"""What the Sinks page says in words, and the computations it asks for beyond the runs of A and B."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.choices.linked_text import Text
from kvviz.choices.texts import LONG_TEXT
from kvviz.figures.attention import attention_map
from kvviz.measures.sinks import growth, mean_known, sink_share
from kvviz.ui.shell import runs
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.runs import Key, Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plural, setup_words

Floats = NDArray[np.floating]
SENTENCES = 64


def shares(run: Run, sinks: int) -> Floats:
    """Share on the first tokens, mean over the queries after the prompt, (L, A)."""
    assert run.trace.first_weights is not None
    return sink_share(run.trace.first_weights, sinks, run.trace.prompt_tokens)


def headline(run: Run, sinks: int) -> str:
    """How much the late queries give to the first tokens, and in which layers."""
    if run.trace.prompt_tokens >= run.trace.tokens:
        return (
            f"No query comes after the prompt ({plural(run.trace.tokens, 'token')} in all): choose a longer text, or "
            "end the prompt earlier. The last query is shown."
        )
    by_layer = mean_known(shares(run, sinks))
    if run.trace.tokens <= sinks:
        return (
            f"All {plural(run.trace.tokens, 'token')} count as sinks, so they get all attention: choose a longer text."
        )
    if not np.isfinite(by_layer).any():
        return "No query after the prompt was computed."
    if not np.nanmax(by_layer):
        return (
            f"Queries after the prompt give nothing to the first {plural(sinks, 'token')}: {why_nothing(run, sinks)} "
            f"(policy A: {setup_words(run.trace.setup)})."
        )
    most, least = int(np.nanargmax(by_layer)), int(np.nanargmin(by_layer))
    first = f"the first {plural(sinks, 'token')}"
    return (
        f"Queries after the prompt give {np.nanmean(by_layer):.0%} of their attention to {first} on average: "
        f"{by_layer[most]:.0%} in layer {most}, {by_layer[least]:.0%} in layer {least} "
        f"(policy A: {setup_words(run.trace.setup)})."
    )


def denominator_words(run: Run, sinks: int, name: str) -> str:
    """What would happen to the other weights if the first tokens left."""
    by_layer, first = mean_known(shares(run, sinks)), f"the first {plural(sinks, 'token')}"
    if not np.isfinite(by_layer).any():
        return f"Under {name} no query after the prompt was computed."
    if not np.nanmax(by_layer):
        return f"Under {name} {first} have no share of the softmax denominator: {why_nothing(run, sinks)}."
    layer = int(np.nanargmax(by_layer))
    assert run.trace.first_weights is not None
    factors = growth(run.trace.first_weights[layer], sinks, run.trace.prompt_tokens)
    if not len(factors):
        return f"Under {name} no query after the prompt sees any token but {first}."
    median, tenth = np.quantile(factors, [0.5, 0.9])
    return (
        f"Under {name} {first} make up {by_layer[layer]:.0%} of the softmax denominator in layer {layer} on average. "
        f"Without them the other weights of a row would grow by a factor of 1 / (1 − share): {times(median)} in the "
        f"median row of that layer, {times(tenth)} or more in one row of ten."
    )


def why_nothing(run: Run, sinks: int) -> str:
    """Why the late queries do not see the first tokens: gone, never read, or hidden."""
    trace = run.trace
    if trace.evicted_at[:, :, :sinks].max() > trace.prompt_tokens:
        return "the pattern hides them, though some are still in the cache"
    is_afresh = trace.setup.policy.recomputes
    return "they are not among the tokens that are re-computed" if is_afresh else "they have left the cache"


def times(factor: float) -> str:
    """A factor in three digits; beyond a million float32 weights cannot tell."""
    return "more than a million" if factor > 1e6 else f"{factor:.3g}"


def norm_words(run: Run, layer: int, head: int, sinks: int) -> str:
    """The norms of the keys and values of the first tokens beside the others."""
    parts, ratio = [], 1.0
    for name, norms in (("keys", run.trace.key_norm), ("values", run.trace.value_norm)):
        assert norms is not None
        mine, others = norms[layer, head, :sinks], norms[layer, head, sinks:]
        if len(others):
            parts.append(f"{name} {np.mean(mine):.3g} against {np.median(others):.3g}")
            ratio = float(np.mean(mine) / np.median(others))  # of the values, which come last
    if not parts:
        return "The text has no other tokens to compare with."
    remark = "The values of the first tokens are not shorter than the others here."
    if ratio < 0.9:
        remark = "The values of the first tokens are shorter, so attention to them adds less to the output."
    return (
        f"Layer {layer}, KV head {head}, mean norm of the first {plural(sinks, 'token')} against the median norm of "
        f"the others: {'; '.join(parts)}. {remark}"
    )


def sentences_job(view: View) -> tuple[Key, Callable[[Job], Result]]:
    """The averaged maps: they depend on the model alone."""
    name = view.experiment.model

    def compute(job: Job) -> Result:
        from kvviz.analysis.sentence_average import averaged_maps, sentences_of

        loaded = runs.loaded_model(name, job.tell)
        found = sentences_of(loaded.tokenizer, Text.of_preset(LONG_TEXT).content[:60_000], SENTENCES)

        def progress(share: float) -> None:
            job.report(f"{loaded.card.title} reads {len(found)} sentences", share)

        maps = averaged_maps(loaded.model, found, progress=progress, is_cancelled=job.is_unwanted)
        return Result((maps, len(found)), maps.nbytes)

    return ("sentences", name), compute


def shown_layers(layers: int, chosen: int) -> list[int]:
    """Six layers from bottom to top, the chosen one among them."""
    return sorted({0, min(1, layers - 1), layers // 3, 2 * layers // 3, layers - 1, chosen})


def draw_sentences(maps: Floats, chosen: int) -> None:
    """Six averaged maps in two rows; each row is a set of columns of its own, or a phone would mix their order."""
    labels, layers = [str(position) for position in range(maps.shape[-1])], shown_layers(len(maps), chosen)
    for row in (layers[:3], layers[3:]):
        for column, layer in zip(st.columns(3), row, strict=False):
            with column:
                title = f"Layer {layer}"
                figure = drawn(attention_map, maps[layer], labels, scale="linear", title=title, is_small=True)
                show(figure, f"sentences-{layer}")


def sentence_words(maps: Floats, count: int) -> str:
    """Where the last query of a sentence looks, from the bottom to the top."""
    last = maps[:, -1]
    local, first = last[:, -4:].sum(-1), last[:, 0]
    sinking = np.flatnonzero(first > 0.3)
    where = f"layers {sinking[0]} to {sinking[-1]}" if len(sinking) else "no layer"
    return (
        f"Mean over {count} sentences of {maps.shape[-1]} tokens and all heads. In layers 0 and 1 the last query gives "
        f"{local[:2].mean():.0%} to the four latest tokens and {first[:2].mean():.0%} to the first one; more than 30% "
        f"goes to the first token in {len(sinking)} of {len(maps)} layers ({where})."
    )

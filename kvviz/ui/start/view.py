"""What the landing page says: the headline, three cards, and questions that open a page with its settings."""

from __future__ import annotations

import numpy as np
import streamlit as st

from kvviz.figures.series import binary_unit
from kvviz.run.trace import Trace
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.model_card import model_title
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.settings import registered
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plural, setup_words
from kvviz.ui.start.questions import QUESTIONS


def mean_loss(trace: Trace) -> float:
    """Mean loss in nats over the tokens after the prompt; NaN where there is none."""
    late = trace.nll[trace.prompt_tokens - 1 :]
    return float(np.nanmean(late)) if np.isfinite(late).any() else float("nan")


def held_at_the_end(trace: Trace) -> int:
    """The most entries any layer and KV head holds after the last step."""
    return int(trace.entries()[..., -1].max())


def held_words(trace: Trace) -> str:
    """``held at most 249 of them, 70 at the end``: what a policy drops when the prompt ends was all held until then."""
    most, end = int(trace.entries().max()), held_at_the_end(trace)
    return f"held at most {most} of them" + (f", {end} at the end" if end != most else "")


def headline(a: Run, b: Run) -> str:
    """What A holds, what it saves and what it costs against B, in one sentence."""
    loss = mean_loss(a.trace) - mean_loss(b.trace)
    cost = "" if np.isnan(loss) else f", {loss_words(loss)}"
    saved = saved_words(a.trace.cache_bytes, b.trace.cache_bytes)
    at_end = " at the end" if a.trace.entries().max() != held_at_the_end(a.trace) else ""
    return (
        f"The model read {plural(a.trace.tokens, 'token')} and {held_words(a.trace)}: {saved} "
        f"{setup_words(b.trace.setup)}{at_end}{cost} (policy A: {setup_words(a.trace.setup)})."
    )


def computed_words(view: View, a: Run, b: Run) -> str:
    """Who computed what is shown, and how long it took when it was computed."""
    seconds = " and ".join(f"{name} in {run.trace.seconds:.2g} s" for name, run in (("A", a), ("B", b)))
    return f"Computed on this server by {model_title(view)}, which read the text under {seconds}."


def loss_words(loss: float) -> str:
    if abs(loss) < 5e-4:  # what the third digit would show, and float order may make
        return "the same loss"
    return f"{abs(loss):.3g} nats per token {'worse' if loss > 0 else 'better'}"


def saved_words(a_bytes: int, b_bytes: int) -> str:
    """``75% less cache than``; re-computation has no cache to compare with."""
    if not a_bytes or not b_bytes:
        return "as little cache as" if a_bytes == b_bytes else f"{'a' if a_bytes else 'no'} cache, unlike"
    share = 1 - a_bytes / b_bytes
    return "as much cache as" if share == 0 else f"{abs(share):.0%} {'less' if share > 0 else 'more'} cache than"


def cards(a: Run, b: Run) -> list[tuple[str, str, str, str]]:
    """Entries, bytes and loss: name, value under A, B beside it, and what the name means."""
    traces = (a.trace, b.trace)
    size, unit = binary_unit(max(t.cache_bytes for t in traces))
    held = [f"{held_at_the_end(t)} of {t.tokens}" for t in traces]
    bytes_ = [f"{t.cache_bytes / size:.3g} {unit}" for t in traces]
    losses = [mean_loss(t) for t in traces]
    nats = ["—" if np.isnan(loss) else f"{loss:.3g} nats" for loss in losses]
    return [
        ("Tokens held at the end", held[0], f"B: {held[1]}", meaning("budget")),
        ("Cache, K and V, all layers", bytes_[0], f"B: {bytes_[1]}", meaning("KV cache")),
        ("Loss per token after the prompt", nats[0], f"B: {nats[1]}", meaning("loss")),
    ]


def questions(view: View) -> None:
    """Six links, each to a page with the settings that answer it."""
    ordinary, paths = View().words(), {entry.title: entry.path for entry in registered()}
    icon = ":material/arrow_forward:"
    for column, part in zip(st.columns(2), (QUESTIONS[::2], QUESTIONS[1::2]), strict=True):
        for one in part:
            column.page_link(paths[one.page], label=one.label, icon=icon, query_params={**ordinary, **one.change})

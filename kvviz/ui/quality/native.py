"""Built for windows or not: a model trained with full attention under a window, beside one trained with windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from kvviz.choices.patterns import Layered
from kvviz.choices.setup import Setup
from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.figures.bars import bars
from kvviz.models import DEFAULT_MODEL, MODELS, Loaded
from kvviz.models.store import is_there
from kvviz.models.table import HYBRID_MODEL
from kvviz.policies.window import Window
from kvviz.ui.shell import runs, waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.page import Page
from kvviz.ui.shell.runs import Key

WINDOW, EVERY = 512, 6  # of Gemma 3 270M: windows of 512 in five of six layers
TOKENS, SCORED_FROM = 2048, 1024
WINDOW_IN_ALL, AS_BUILT = Setup(Window(budget=WINDOW)), Setup(pattern=Layered(window=WINDOW, full_every=EVERY))


@dataclass(frozen=True)
class Reading:
    """One model's loss on the text under one setup."""

    model: str
    words: str
    loss: float  # nats a token from ``SCORED_FROM`` on
    added: float  # to the same model as it was trained
    cache_bytes: int


@dataclass(frozen=True)
class Readings:
    """All of them, the trained way of each model first."""

    rows: tuple[Reading, ...]
    bytes: int = 10_000


PLAN: tuple[tuple[str, str, Setup], ...] = (
    (DEFAULT_MODEL, "as trained", Setup()),
    (DEFAULT_MODEL, "window in all layers", WINDOW_IN_ALL),
    (DEFAULT_MODEL, "window in 5 of 6 layers", AS_BUILT),
    (HYBRID_MODEL, "as trained (5 of 6)", Setup()),
    (HYBRID_MODEL, "window in all layers", WINDOW_IN_ALL),
)


def draw(page: Page) -> None:
    """What a window costs a model that was trained without one, and one that was trained with it."""
    if not is_there(MODELS[HYBRID_MODEL]):
        st.info(f"This part compares two models. {MODELS[HYBRID_MODEL].fetching}")
        return
    if found := waiting.extra(*readings_job(), st.empty()):
        rows: tuple[Reading, ...] = found.rows
        st.markdown(reading_words(rows))
        names = [f"{title(row).partition(' ')[0]}, {row.words}" for row in rows]
        added = [row.added for row in rows]
        above = f"What a window of {WINDOW} tokens costs, against the same model as it was trained"
        show(drawn(bars, names, added, unit="nats a token", axis="loss added", title=above), "windows-built-in")
        st.caption(terms_words())


def readings_job() -> tuple[Key, Callable[[Job], Readings]]:
    """Both models on the language reference, each under its plan."""

    def compute(job: Job) -> Readings:
        rows: list[Reading] = []
        for place, (name, words, setup) in enumerate(PLAN):

            def tell(share: float, place: int = place, name: str = name) -> None:
                job.report(f"{MODELS[name].title} reads {TOKENS:,} tokens", (place + share) / len(PLAN))

            rows.append(reading(name, words, setup, rows, job, tell))
        return Readings(tuple(rows))

    return ("native", HYBRID_MODEL, DEFAULT_MODEL, TOKENS), compute


def reading(
    name: str, words: str, setup: Setup, before: Sequence[Reading], job: Job, tell: Callable[[float], None]
) -> Reading:
    """Read the text once; the first reading of a model is what the others are compared with."""
    from kvviz.run.replay import replay

    loaded = runs.loaded_model(name, job.tell)
    trace = replay(loaded.model, text_ids(loaded), setup, progress=tell, is_cancelled=job.is_unwanted)
    loss = float(np.mean(trace.nll[SCORED_FROM - 1 :]))
    trained = next((row.loss for row in before if row.model == name), loss)
    return Reading(name, words, loss, loss - trained, trace.cache_bytes)


def text_ids(loaded: Loaded) -> list[int]:
    """The language reference, after the token that began every text of the model's training, where it has one.

    Without it Gemma loses more than a nat at the start.
    """
    from kvviz.models.tokens import encode

    begin = [int(loaded.tokenizer.bos_token_id)] if loaded.card.begins_texts else []
    return [*begin, *encode(loaded.tokenizer, PRESETS[LONG_TEXT].text(), TOKENS - len(begin))]


def reading_words(rows: Sequence[Reading]) -> str:
    """What the window costs each."""
    full, window, as_built, hybrid, closed = rows
    return (
        f"{title(full)} was trained with full attention: a window of {WINDOW} in every layer costs it "
        f"{window.added:.2f} nats a token, and windows in five of six layers cost {as_built.added:.2f}. "
        f"{title(hybrid)} was trained with windows in five of six layers: they are how it reads (loss "
        f"{hybrid.loss:.2f}), and closing its full layers too costs {closed.added:.2f}."
    )


def title(row: Reading) -> str:
    return MODELS[row.model].title


def terms_words() -> str:
    """Under which terms the second model is used, and what the numbers do not say."""
    card = MODELS[HYBRID_MODEL]
    return (
        f"{card.attribution} ([{card.licence}]({card.licence_url})). The two models cut the text into different "
        "tokens, so their losses are not compared with each other, only with the same model's own."
    )

"""Which needles are found at which depth, under A, under B and with the full cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.choices.setup import Setup
from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.figures.needles import needle_grid
from kvviz.ui.quality.common import Result
from kvviz.ui.quality.settings import TASK_WORDS, QualitySettings
from kvviz.ui.shell import runs, waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.state import View, kept_setting
from kvviz.ui.shell.words import setup_words

DEPTHS = (0, 25, 50, 75, 100)
SEEDS = 2
MANY_TOKENS = 10**9  # no limit: the whole text
VOID = (
    "This task is void for this model: with the full cache it finds less than 95 % of the needles itself, so a miss "
    "says nothing about a policy. Choose another task or a shorter prompt."
)


def draw(view: View) -> None:
    """Which needles are found at which depth, under A, under B and with the full cache."""
    left, right = st.columns(2)
    with left:
        words = {"format_func": TASK_WORDS.__getitem__, **kept_setting(QualitySettings, "task")}
        task = st.selectbox("What is asked for", list(TASK_WORDS), **words)
    try:
        tokens = whole_number(right, "Tokens of a prompt", "needle_tokens", 256, 220, 1024, step=64)
    except ValueError as error:
        st.error(str(error))
        return
    if found := waiting.extra(*needles_job(view, task, tokens or 256), st.empty()):
        result = found.value
        if result.is_void:
            st.warning(VOID)
            return
        st.markdown(needle_words(result))
        title = f"Needles found: {TASK_WORDS[task]}, prompts of {tokens or 256} tokens"
        show(drawn(needle_grid, result.names, DEPTHS, result.found, result.held, title=title), "needles")


@dataclass(frozen=True)
class Needles:
    """Grids of several setups: found and held, (setups, depths), means over the seeds."""

    names: list[str]
    found: NDArray[np.floating]
    held: NDArray[np.floating]
    counts: list[tuple[int, int, tuple[float, float]]]  # found, of, interval
    is_void: bool


def needles_job(view: View, task_name: str, tokens: int) -> tuple[Key, Callable[[Job], Result]]:
    """The needles under A, under B and with the full cache, whose grid says whether the task means anything."""
    setups = list(dict.fromkeys([view.experiment.setup, view.versus, Setup()]))
    name = view.experiment.model

    def compute(job: Job) -> Result:
        from kvviz.analysis.tasks import TASKS
        from kvviz.analysis.tasks.scoring import grid
        from kvviz.models.tokens import encode

        loaded, task, grids = runs.loaded_model(name, job.tell), TASKS[task_name], []
        filler = encode(loaded.tokenizer, PRESETS[LONG_TEXT].text(), MANY_TOKENS)
        for place, setup in enumerate(setups):

            def tell(share: float, place: int = place, setup: Setup = setup) -> None:
                job.report(f"needles under {setup_words(setup)}", (place + share) / len(setups))

            grids.append(
                grid(
                    loaded.model,
                    lambda text: encode(loaded.tokenizer, text, MANY_TOKENS),
                    filler,
                    task,
                    setup,
                    tokens=tokens,
                    depths=DEPTHS,
                    seeds=SEEDS,
                    progress=tell,
                    is_cancelled=job.is_unwanted,
                )
            )
        by_depth = [[[c for c in one.cells if c.depth == depth] for depth in DEPTHS] for one in grids]
        found = np.array([[np.mean([bool(c.found) for c in cells]) for cells in row] for row in by_depth])
        held = np.array([[np.mean([c.held for c in cells]) for cells in row] for row in by_depth])
        counts = [(one.found, len(one.cells), one.interval) for one in grids]
        is_void = grids[setups.index(Setup())].is_void
        return Result(Needles([setup_words(s) for s in setups], found, held, counts, is_void))  # type: ignore[arg-type]

    return ("needles", name, task_name, tokens, *map(str, setups)), compute


def needle_words(found: Needles) -> str:
    """How many needles each setup found, with the interval that so few tries leave."""
    parts = [
        f"{name}: {count} of {of} (95 % interval {low:.0%} to {high:.0%})"
        for name, (count, of, (low, high)) in zip(found.names, found.counts, strict=True)
    ]
    return f"Found: {'; '.join(parts)}. *Forgotten*: fewer than half of the layers and heads still held the needle."

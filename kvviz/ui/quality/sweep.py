"""Loss against bytes: every policy at every budget on the text on the left."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from kvviz.analysis.sweep import Point, points_of
from kvviz.choices.experiment import Experiment
from kvviz.choices.setup import Setup
from kvviz.figures.sweep import Kept, loss_against_bytes
from kvviz.ui.quality.common import late_loss
from kvviz.ui.quality.scored import read_under, scored_text, text_key
from kvviz.ui.shell import runs, waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.page import Page
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.words import joined, setup_words

POLICIES = ("window", "streaming", "h2o", "tova", "snapkv")
SNAPKV = (
    "kernel=13,pooling=max"  # with observe=8 it still finds a number in 64 of 256 tokens; with 32 and 5 it does not
)
SNAPKV_WORDS = "Here snapkv observes 8 queries, with a kernel of 13 and max pooling."
SHARES = (32, 16, 8, 4, 2)  # budgets as parts of the text
LEAST_BUDGET = 8
ENOUGH = 0.1  # nats a token within which a policy is as good as the full cache


def draw(page: Page) -> None:
    """Loss against bytes, a curve a policy."""
    if found := waiting.extra(*sweep_job(page.view.experiment), st.empty()):
        st.markdown(sweep_words(found.value), help=meaning("loss", "policy"))
        title = "Loss after the prompt against bytes held at the end"
        show(drawn(loss_against_bytes, found.value[1:], found.value[0], title=title), "sweep")
        st.caption(f"A hollow point is beaten: another one holds no more bytes and loses no more. {SNAPKV_WORDS}")


def budgets_for(tokens: int) -> list[int]:
    """A few budgets of a text, none so small that a policy refuses it."""
    return sorted({max(LEAST_BUDGET, tokens // share) for share in SHARES})


def points_at(budget: int) -> list[Point]:
    """Each policy at one budget, snapkv with the votes of a short question and room around what it picks."""
    words = [f"snapkv:observe={min(8, budget // 2)},{SNAPKV}" if name == "snapkv" else name for name in POLICIES]
    return points_of(words, [budget], Setup())


def sweep_points(tokens: int) -> list[Point]:
    """Each policy at each budget."""
    return [point for budget in budgets_for(tokens) for point in points_at(budget)]


def sweep_job(experiment: Experiment) -> tuple[Key, Callable[[Job], Result]]:
    """Every policy at every budget on this text, and the full cache."""

    def compute(job: Job) -> Result:
        runs.loaded_model(experiment.model, job.tell)
        points = [Point("full", None, Setup()), *sweep_points(len(scored_text(experiment)[0]))]
        found = []
        for place, point in enumerate(points):

            def tell(share: float, place: int = place, point: Point = point) -> None:
                job.report(f"{place + 1} of {len(points)}: {setup_words(point.setup)}", (place + share) / len(points))

            trace = read_under(experiment, point.setup, job, tell)
            label = "all tokens" if point.budget is None else f"budget {point.budget}"
            found.append(Kept(point.policy.partition(":")[0], label, trace.cache_bytes, late_loss(trace)))
        return Result(found)

    return ("sweep", *text_key(experiment)), compute


def sweep_words(found: list[Kept]) -> str:
    """From which budget on each policy comes within a tenth of a nat of the full cache."""
    full, points = found[0], found[1:]
    parts = []
    for policy in dict.fromkeys(point.policy for point in points):
        own = [point for point in points if point.policy == policy]
        good = [point.label.removeprefix("budget ") for point in own if point.loss - full.loss < ENOUGH]
        parts.append(f"{policy} from {good[0]} on" if good else f"{policy} at none of these budgets")
    return f"Within {ENOUGH} nats a token of the full cache: {joined(parts)}."

"""Loss against bytes: every policy at every budget on this text."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from kvviz.analysis.sweep import Point, points_of
from kvviz.choices.setup import Setup
from kvviz.figures.sweep import Kept, loss_against_bytes
from kvviz.ui.quality.common import Result, has_losses, late_loss
from kvviz.ui.shell import runs, waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.runs import Key, Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import joined, setup_words

POLICIES = ("window", "streaming", "h2o", "tova", "snapkv")
SHARES = (32, 16, 8, 4, 2)  # budgets as parts of the text


def draw(view: View, run: Run) -> None:
    """Loss against bytes, a curve a policy."""
    if not has_losses(run.trace):
        st.info("No token comes after the prompt, so a sweep has nothing to score: end the prompt earlier.")
        return
    if found := waiting.extra(*sweep_job(view, run), st.empty()):
        st.markdown(sweep_words(found.value), help=meaning("loss", "policy"))
        title = "Loss after the prompt against bytes held at the end"
        show(drawn(loss_against_bytes, found.value[1:], found.value[0], title=title), "sweep")
        st.caption("A hollow point is beaten: another one holds no more bytes and loses no more.")


def budgets_for(tokens: int) -> list[int]:
    """A few budgets of a text, none so small that a policy refuses it."""
    return sorted({max(8, tokens // share) for share in SHARES})


def sweep_points(tokens: int) -> list[Point]:
    """Each policy at each budget, snapkv's votes taken from fewer queries where the budget is small."""
    points = []
    for budget in budgets_for(tokens):
        words = [f"snapkv:observe={min(16, budget // 2)}" if name == "snapkv" else name for name in POLICIES]
        points += points_of(words, [budget], Setup())
    return points


def sweep_job(view: View, run: Run) -> tuple[Key, Callable[[Job], Result]]:
    """Every policy at every budget on this text, and the full cache."""
    ids, prompt = run.trace.token_ids, run.trace.prompt_tokens

    def compute(job: Job) -> Result:
        from kvviz.run.replay import replay

        loaded, points = runs.loaded_model(view.experiment.model, job.tell), sweep_points(len(ids))
        found = []
        for place, point in enumerate([Point("full", None, Setup()), *points]):

            def tell(share: float, place: int = place, point: Point = point) -> None:
                job.report(
                    f"{place + 1} of {len(points) + 1}: {setup_words(point.setup)}", (place + share) / (len(points) + 1)
                )

            options = {"prompt_tokens": prompt, "progress": tell, "is_cancelled": job.is_unwanted}
            trace = replay(loaded.model, ids.tolist(), point.setup, **options)  # type: ignore[arg-type]
            label = "all tokens" if point.budget is None else f"budget {point.budget}"
            found.append(Kept(point.policy.partition(":")[0], label, trace.cache_bytes, late_loss(trace)))
        return Result(found)

    return ("sweep", view.experiment.model, prompt, ids.tobytes()), compute


def sweep_words(found: list[Kept]) -> str:
    """From which budget on each policy comes within a tenth of a nat of the full cache."""
    full, points = found[0], found[1:]
    parts = []
    for policy in dict.fromkeys(point.policy for point in points):
        own = [point for point in points if point.policy == policy]
        good = [point.label.removeprefix("budget ") for point in own if point.loss - full.loss < 0.1]
        parts.append(f"{policy} from {good[0]} on" if good else f"{policy} at none of these budgets")
    return f"Within 0.1 nats a token of the full cache: {joined(parts)}."

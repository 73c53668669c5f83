"""At which budget each policy starts to fail, and on what task."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from kvviz.analysis.limits import smallest_that_works
from kvviz.choices.experiment import Experiment
from kvviz.choices.setup import Setup
from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.figures.limits import limit_table
from kvviz.ui.quality.common import MANY_TOKENS, first_tokens, late_loss, model_for
from kvviz.ui.quality.scored import read_under, text_key
from kvviz.ui.quality.sweep import ENOUGH, POLICIES, SNAPKV_WORDS, points_at
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.page import Page
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.words import joined, plain

TOKENS = 256  # of a prompt
BUDGETS = (16, 32, 64, 128)
DEPTHS, FOUND = (0, 33, 67, 100), 0.5
LOSS = "loss"
TASKS = ("passkey", "multikey", "pairs", "induction")


@dataclass(frozen=True)
class Limits:
    """The smallest budget that works, by (policy, task); ``void`` are the tasks that the full cache fails."""

    smallest: dict[tuple[str, str], int | None]
    tasks: tuple[str, ...]  # that mean something for this model
    void: tuple[str, ...]
    seconds: float


def draw(page: Page) -> None:
    """A table of policies and tasks."""
    if found := waiting.extra(*limits_job(page.view.experiment), st.empty()):
        limits: Limits = found.value
        st.markdown(plain(limit_words(limits)), help=meaning("budget", "policy"))
        title = "Smallest budget that still works"
        show(drawn(limit_table, POLICIES, limits.tasks, limits.smallest, BUDGETS, title=title), "limits")
        st.caption(plain(rule_words(limits)))


def limits_job(experiment: Experiment) -> tuple[Key, Callable[[Job], Result]]:
    """Every policy on every task, from the largest budget downwards until it fails."""

    def compute(job: Job) -> Result:
        return Result(found_limits(experiment, job))

    return ("limits", *text_key(experiment)), compute


def found_limits(experiment: Experiment, job: Job) -> Limits:
    """Asks the full cache first, whose loss is the measure and whose misses make a task void."""
    started = time.perf_counter()
    model_for(experiment.model, [], job)
    steps = (len(POLICIES) + 1) * (len(TASKS) + 1)
    done = 0

    def tell(what: str) -> None:
        job.report(what, done / steps)

    full = late_loss(read_under(experiment, Setup(), job, lambda share: tell("loss with the full cache")))
    void = tuple(name for name in TASKS if not finds(experiment, Setup(), name, 1.0, job, tell))
    done += len(TASKS) + 1
    smallest: dict[tuple[str, str], int | None] = {}
    for policy in POLICIES:
        for task in (LOSS, *TASKS):

            def works(budget: int, policy: str = policy, task: str = task) -> bool:
                setup = setup_at(policy, budget)
                if task == LOSS:
                    trace = read_under(experiment, setup, job, lambda share: tell(f"loss under {setup}"))
                    return late_loss(trace) - full < ENOUGH
                return finds(experiment, setup, task, FOUND, job, tell)

            if task not in void:
                smallest[policy, task] = smallest_that_works(BUDGETS, works)
            done += 1
    kept = tuple(name for name in (LOSS, *TASKS) if name not in void)
    return Limits(smallest, kept, void, time.perf_counter() - started)


def setup_at(policy: str, budget: int) -> Setup:
    return next(point.setup for point in points_at(budget) if point.policy.partition(":")[0] == policy)


def finds(
    experiment: Experiment, setup: Setup, task_name: str, share: float, job: Job, tell: Callable[[str], None]
) -> bool:
    """Whether that share of the needles is found under a setup."""
    from kvviz.analysis.tasks import TASKS as ALL
    from kvviz.analysis.tasks.scoring import each_cell, finds_enough
    from kvviz.models.tokens import encode

    loaded = model_for(experiment.model, [setup], job)
    options: dict[str, Any] = {"tokens": TOKENS, "depths": DEPTHS, "seeds": 1}
    options |= {"progress": lambda share: tell(f"{task_name} under {setup}"), "is_cancelled": job.is_unwanted}
    cells = each_cell(
        loaded.model,
        lambda text: encode(loaded.tokenizer, text, MANY_TOKENS),
        first_tokens(experiment.model, PRESETS[LONG_TEXT].text(), MANY_TOKENS),
        ALL[task_name],
        setup,
        **options,
    )
    return finds_enough((cell for cell, _ in cells), len(DEPTHS), share)


def limit_words(limits: Limits) -> str:
    """The policy that needs least for everything, and where each starts to fail first."""
    parts = []
    for policy in POLICIES:
        found = {task: limits.smallest[policy, task] for task in limits.tasks}
        lost = [task for task, budget in found.items() if budget is None]
        if lost:
            parts.append(f"{policy} fails {joined(lost)} at {BUDGETS[-1]} entries already")
        else:
            most = max(found, key=lambda task: found[task] or 0)
            parts.append(f"{policy} does everything down to {found[most]} entries, then {most} fails first")
    return f"{'; '.join(parts)}."


def rule_words(limits: Limits) -> str:
    """What counts as working, what is void, and how long it took."""
    void = f" Void for this model, because the full cache misses some: {joined(limits.void)}." if limits.void else ""
    return (
        f"Loss works where it is within {ENOUGH} nats of the full cache on the text on the left; a task where at least "
        f"{FOUND:.0%} of {len(DEPTHS)} prompts of {TOKENS} tokens are answered, one at each of the depths 0, 33, 67 "
        f"and 100 %. Budgets tried: {joined(list(map(str, BUDGETS)))}.{void} {SNAPKV_WORDS} "
        f"Measured in {limits.seconds:.0f} s."
    )

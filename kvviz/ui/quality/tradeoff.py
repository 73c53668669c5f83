"""Fitting in memory and keeping answers are separate tests: bytes saved against loss, and against needles found."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from kvviz.choices.experiment import Experiment
from kvviz.choices.setup import Setup
from kvviz.figures.sweep import Kept
from kvviz.figures.tradeoff import Setting, trade_off
from kvviz.ui.quality.needle_run import Needles, needles_job
from kvviz.ui.quality.needle_words import Row, void_words
from kvviz.ui.quality.scored import measured, read_under, text_key
from kvviz.ui.quality.settings import TASK_WORDS, TRADES, QualitySettings
from kvviz.ui.quality.setups import compared
from kvviz.ui.quality.sweep import SNAPKV_WORDS, points_at, sweep_job
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.page import Page
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.state import kept_setting
from kvviz.ui.shell.words import plain, setup_words

NEEDLE_TOKENS, NEEDLE_BUDGET, SEEDS = 256, 64, 2
TASK = "passkey"
CHOSEN = "A, B and added"


def draw(page: Page) -> None:
    """A point a setup: what it saves, and what that costs in loss or in needles."""
    looks = {"format_func": TRADES.__getitem__, "required": True, **kept_setting(QualitySettings, "trade")}
    trade = st.segmented_control("Bytes saved against", list(TRADES), **looks)
    (by_needles if trade == "needles" else by_loss)(page)


def by_loss(page: Page) -> None:
    """Against loss added on the text on the left: A, B, the added ones and every point of the sweep."""
    named, experiment = compared(page.view), page.view.experiment
    jobs = [sweep_job(experiment), *(measured_job(experiment, one.setup) for one in named)]
    found = waiting.extras(jobs, st.empty())
    if any(one is None for one in found):
        return
    sweep, *own = [one.value for one in found if one is not None]
    full: Kept = sweep[0]
    settings = [
        setting_of(point.policy, f"{point.policy}, {point.label}", point.cache_bytes, point.loss, full)
        for point in sweep[1:]
    ]
    settings += [
        setting_of(CHOSEN, one.label, result.cache_bytes, result.loss, full, one.letter.upper())
        for one, result in zip(named, own, strict=True)
    ]
    axis, title = "loss added (nats a token)", "Bytes saved against loss added"
    drawing = drawn(trade_off, settings, axis=axis, is_more_better=False, title=title)
    st.markdown(plain(drawing.alt.partition(": ")[2]), help=meaning("loss"))
    show(drawing, "trade-off-loss")
    st.caption(
        "Hollow: another setup saves no fewer bytes and loses no more. Bytes are those held at the end. " + SNAPKV_WORDS
    )


def of_point(point: Kept, full: Kept) -> Setting:
    """A point of the sweep."""
    return setting_of(point.policy, f"{point.policy}, {point.label}", point.cache_bytes, point.loss, full)


def saved(one: Needles, full: Needles) -> float:
    return 1 - one.cache_bytes / full.cache_bytes


def setting_of(group: str, label: str, held: int, loss: float, full: Kept, mark: str = "") -> Setting:
    return Setting(group, label, 1 - held / full.cache_bytes, loss - full.loss, mark)


def measured_job(experiment: Experiment, setup: Setup) -> tuple[Key, Callable[[Job], Result]]:
    """Loss and bytes of one setup on the text on the left."""

    def compute(job: Job) -> Result:
        doing = f"reading under {setup_words(setup)}"
        return Result(measured(read_under(experiment, setup, job, lambda share: job.report(doing, share))))

    return ("measured", *text_key(experiment), str(setup)), compute


def by_needles(page: Page) -> None:
    """Against the share of pass keys found: A, B, the added ones, and each policy at one budget."""
    model = page.view.experiment.model
    asked: list[tuple[str, str, str, Setup]] = [("full", "full cache", "", Setup())]
    asked += [(CHOSEN, one.label, one.letter.upper(), one.setup) for one in compared(page.view)]
    asked += [(p.policy.partition(":")[0], str(p.setup), "", p.setup) for p in points_at(NEEDLE_BUDGET)]
    setups = list(dict.fromkeys(one[3] for one in asked))
    jobs = [needles_job(model, setup, TASK, NEEDLE_TOKENS, SEEDS) for setup in setups]
    found = waiting.extras(jobs, st.empty())
    if any(one is None for one in found):
        return
    by_setup: dict[Setup, Needles] = {s: one.value for s, one in zip(setups, found, strict=True) if one is not None}
    full = by_setup[Setup()]
    if full.is_void:
        st.warning(void_words(Row("full", Setup(), NEEDLE_TOKENS, full)))
        return
    settings = [
        Setting(
            group,
            label,
            1 - by_setup[setup].cache_bytes / full.cache_bytes,
            100 * float(by_setup[setup].found.mean()),
            mark,
        )
        for group, label, mark, setup in asked
    ]
    axis, title = "needles found (%)", f"Bytes saved against needles found: {TASK_WORDS[TASK]}"
    drawing = drawn(trade_off, settings, axis=axis, is_more_better=True, title=title)
    st.markdown(plain(drawing.alt.partition(f"{title}: ")[2]), help=meaning("budget"))
    show(drawing, "trade-off-needles")
    st.caption(
        f"Hollow: another setup saves no fewer bytes and finds no fewer. {full.found.size} prompts of {NEEDLE_TOKENS} "
        f"tokens for each setup; the policies of the list at a budget of {NEEDLE_BUDGET}. {SNAPKV_WORDS}"
    )

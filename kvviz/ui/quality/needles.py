"""Which needles are found at which depth and length, under every setup, and whether a miss was forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from kvviz.choices.setup import Setup
from kvviz.ui.quality.needle_run import needles_job
from kvviz.ui.quality.needle_words import (
    FULL,
    Row,
    cost_words,
    grid_figure,
    legend,
    loss_figure,
    needle_words,
    void_words,
)
from kvviz.ui.quality.settings import LENGTHS, TASK_WORDS, QualitySettings
from kvviz.ui.quality.setups import Named, compared
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.page import Page
from kvviz.ui.shell.state import kept_setting
from kvviz.ui.shell.words import plain


def draw(page: Page) -> None:
    """The menus of task, lengths and tries, and the grid."""
    controls()
    own = page.view.of(QualitySettings)
    lengths, named = [int(length) for length in own.lengths.split("/")], with_full(compared(page.view))
    asked = [(letter, setup, length) for length in lengths for letter, setup in named]
    jobs = [needles_job(page.view.experiment.model, setup, own.task, length, own.seeds) for _, setup, length in asked]
    found = waiting.extras(jobs, st.empty())
    if any(one is None for one in found):
        return
    rows = [Row(*words, one.value) for words, one in zip(asked, found, strict=True) if one is not None]
    void = {row.tokens for row in rows if row.setup == Setup() and row.needles.is_void}
    for length in sorted(void):
        st.warning(void_words(next(row for row in rows if row.setup == Setup() and row.tokens == length)))
    if sound := [row for row in rows if row.tokens not in void]:
        draw_rows(sound, named, own.task)


def draw_rows(rows: Sequence[Row], named: Sequence[tuple[str, Setup]], task: str) -> None:
    title = f"{'Needles found' if rows[0].needles.is_scored else 'Loss'}: {TASK_WORDS[task]}"
    if rows[0].needles.is_scored:
        st.markdown(needle_words(rows))
        show(grid_figure(rows, title), "needles")
    else:
        show(loss_figure(rows, title), "loss-by-depth")
    st.caption(plain(f"{legend(named)} {cost_words(rows)}"))


def controls() -> None:
    """What is asked, how long the prompts are, how often."""
    left, middle, right = st.columns([3, 2, 2])
    words = {"format_func": TASK_WORDS.__getitem__, "help": meaning("needle"), **kept_setting(QualitySettings, "task")}
    left.selectbox("What is asked for", list(TASK_WORDS), **words)
    shown = {length: length.replace("/", ", ").replace("1024", "1,024") for length in LENGTHS}
    middle.selectbox(
        "Tokens of a prompt", LENGTHS, format_func=shown.__getitem__, **kept_setting(QualitySettings, "lengths")
    )
    right.selectbox("Prompts for each depth", (1, 2, 3, 4), **kept_setting(QualitySettings, "seeds"))


def with_full(named: Sequence[Named]) -> list[tuple[str, Setup]]:
    """The setups with their letters, each once, and the full cache, which says whether a task means anything."""
    found: dict[Setup, str] = {}
    for one in named:
        found.setdefault(one.setup, one.letter.upper())
    found.setdefault(Setup(), FULL)
    return [(letter, setup) for setup, letter in found.items()]

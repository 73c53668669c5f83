"""The frame that every page shares: settings, navigation, examples, the runs of A and B, prose."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from kvviz.choices.experiment import Experiment
from kvviz.text.prose import prose
from kvviz.ui.components.settings_closer import settings_closer
from kvviz.ui.shell import runs, waiting
from kvviz.ui.shell.address import take_url, write_url
from kvviz.ui.shell.examples import draw_examples
from kvviz.ui.shell.imports import settings_sent, uncollected
from kvviz.ui.shell.jobs import SETUP, Job
from kvviz.ui.shell.model_card import model_card
from kvviz.ui.shell.runs import Run, Wanted
from kvviz.ui.shell.settings import registered
from kvviz.ui.shell.sidebar import Sidebar
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plain

QUIET_SECONDS = 4.0  # in which a browser draws its first figures, before torch's import takes a core
PAINT_SECONDS = 0.2  # with 0.1 the rest arrives before the browser has begun
SIDEBAR_WIDTH = 320  # pixels; on a phone it is folded away
STYLE = Path(__file__).with_name("style.css")


@dataclass
class Page:
    """An open page: what is to be shown, and where its first sentence goes."""

    view: View
    top: Any

    @property
    def sides(self) -> list[Experiment]:
        """A and B as experiments: they differ in the setup alone."""
        return [self.view.experiment, replace(self.view.experiment, setup=self.view.versus)]

    def runs(self, *, maps: bool = False) -> tuple[Run, Run]:
        """The runs of A and B, with the maps of all heads of the view's layer where asked; without runs the page ends.

        After a run that was stopped or failed ``view`` becomes that of the figures shown instead.
        """
        notes, slot = st.container(), st.empty()
        self.view, (a, b) = waiting.runs_or_last(self.view, self.sides, maps, slot)
        for note in dict.fromkeys((*a.notes, *b.notes, *place_notes(self.view, a), *stamp_notes())):
            notes.caption(note)
        return a, b

    def paint(self) -> None:
        """Let the browser paint what is there, where the runs are new; it would paint all of the page at once, later.

        Measured at 256 tokens on two cores: two maps show after 0.5 s instead of 0.9.
        """
        if st.session_state.get("painted") != st.session_state.get("shown"):
            time.sleep(PAINT_SECONDS)
            st.session_state["painted"] = st.session_state.get("shown")

    def headline(self, sentence: str) -> None:
        """The one sentence with the numbers of this result."""
        self.top.markdown(f"## {plain(sentence)}")

    def lesson(self, name: str) -> None:
        """How to read the figures, and the formula, folded."""
        text, _, formula = prose(name).partition("\n---\n")
        with st.expander("How to read this, and the formula"):
            st.markdown(text)
            st.markdown(formula)


def open_page(name: str, question: str, intro: str = "") -> Page:
    """Set up the page called ``name`` and read what is to be shown; must be the first call of a page."""
    st.set_page_config(page_title=f"kvviz · {name}", layout="wide", initial_sidebar_state=SIDEBAR_WIDTH)
    st.html(STYLE)
    take_url(name)
    with st.sidebar:
        links = st.container(gap=None)
    sidebar = Sidebar([])
    view = sidebar.draw()
    write_url(view)
    with links:
        for group, entries in groupby(registered(), lambda entry: entry.group):
            st.caption(group)
            for entry in entries:
                st.page_link(entry.path, label=entry.title, query_params=view.words())
        settings_closer(name)
    with st.sidebar:
        model_card(view.experiment.model)
        with st.expander("Copy link"):
            st.code(link_to(view), language=None, wrap_lines=True)
            st.caption("The same link is in the address bar. Every setting is in it, so others see the same figures.")
    st.title(question, anchor=False)
    if intro:
        st.markdown(intro)
    messages = st.container()  # one place for all, so that a new message does not move the figures to another place
    for note in st.session_state.pop("link_notes", []):
        messages.warning(plain(note))
    for problem in sidebar.problems:
        messages.warning(plain(problem))
    page = Page(view, st.container())
    draw_examples(view, next(entry.examples for entry in registered() if entry.title == name))
    settings_sent()
    return page


def place_notes(view: View, run: Run) -> list[str]:
    """A sentence where the link asks for a layer or head that this model does not have."""
    layers, heads = run.trace.layers, run.trace.query_heads
    if view.layer < layers and view.head < heads:
        return []
    return [f"This model has layers 0–{layers - 1} and query heads 0–{heads - 1}; the nearest ones are shown."]


def stamp_notes() -> list[str]:
    """When the runs shown were computed, where an earlier process did it."""
    _, keys = st.session_state["shown"]
    stamps = [runs.WORKER.stamps[key] for key in keys if key in runs.WORKER.stamps]
    return [waiting.stamp_words(min(stamps, key=lambda stamp: stamp.seconds))] if stamps else []


def link_to(view: View) -> str:
    """The page's address with every setting in it."""
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(view.words())}"


def first_runs(view: View) -> list[Wanted]:
    """The runs that a page asks for when it opens on this view, with their keys."""
    page = Page(view, None)
    keys = [runs.key_for(experiment, view.layer, needs_maps=True) for experiment in page.sides]
    return runs.wanted(page.sides, keys)


def compute(wanted: Sequence[Wanted]) -> list[Job]:
    """Have the worker compute these, or take them from the disk; returns when all are there, raises what went wrong."""
    jobs = runs.WORKER.want(SETUP, wanted)
    while not all(job.done.is_set() for job in jobs):
        for job in jobs:
            job.seen()
        time.sleep(0.2)
    for job in jobs:
        if job.error is not None:
            raise job.error
    return jobs


def warm() -> None:
    """Compute what the first visitor sees, or take it from the disk; and load the model for what is asked next."""
    view = View()
    jobs = compute(first_runs(view))
    if any(job.stamp for job in jobs):
        time.sleep(QUIET_SECONDS)
        with uncollected():
            runs.loaded_model(view.experiment.model)

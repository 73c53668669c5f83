"""The frame that every page shares: settings, navigation, the runs of A and B, figures with their numbers, prose."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from kvviz.choices.experiment import Experiment
from kvviz.choices.setup import SETUP_PARSERS
from kvviz.figures import Drawing
from kvviz.text.prose import prose
from kvviz.ui.shell import runs, waiting
from kvviz.ui.shell.address import take_url, write_url
from kvviz.ui.shell.chart import chart, download
from kvviz.ui.shell.model_card import model_card
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.settings import Example, registered
from kvviz.ui.shell.sidebar import Sidebar
from kvviz.ui.shell.state import View, adopt, view_from_query
from kvviz.ui.shell.words import plain

APPEAR_SECONDS = 1.5  # what a browser takes for the settings of its first page
SETTINGS_SENT = threading.Event()
PAINT_SECONDS = 0.2  # with 0.1 the rest arrives before the browser has begun
SIDEBAR_WIDTH = 320  # pixels; on a phone it is folded away
# less air above, formulas and tables that scroll on a phone, notes that stay near their figure
STYLE = """<style>
[data-testid="stMainBlockContainer"] { padding-top: 3.5rem; padding-bottom: 4rem; }
[data-testid="stSidebarUserContent"] { padding-bottom: 1rem; }
.katex-display, [data-testid="stMarkdownContainer"]:has(> table) { overflow: auto hidden; padding-bottom: 0.3rem; }
</style>"""


@dataclass
class Page:
    """An open page: what is to be shown, and where its first sentence goes."""

    view: View
    top: Any
    examples: tuple[Example, ...] = ()

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
        for note in dict.fromkeys((*a.notes, *b.notes, *place_notes(self.view, a))):
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
        self.top.markdown(f"#### {plain(sentence)}")

    def lesson(self, name: str) -> None:
        """How to read the figures, folded, and the formula."""
        text, _, formula = prose(name).partition("\n---\n")
        with st.expander("How to read this"):
            st.markdown(text)
        if formula:
            st.markdown(formula)

    def try_this(self) -> None:
        """The page's examples as buttons that set the experiment."""
        st.subheader("Try this", anchor=False)
        for first in range(0, len(self.examples), 3):  # each row apart, or a phone would mix their order
            for column, one in zip(st.columns(3), self.examples[first : first + 3], strict=False):
                press: dict[str, Any] = {"on_click": change_view, "args": (self.view, one.change)}
                column.button(one.label, key=f"try.{self.examples.index(one)}", width="stretch", **press)
                column.caption(one.watch)


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
        for entry in registered():
            st.page_link(entry.path, label=entry.title, query_params=view.words())
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
    page = Page(view, st.container(), next(entry.examples for entry in registered() if entry.title == name))
    let_settings_appear()
    return page


def let_settings_appear() -> None:
    """Before torch is there: its import takes a core and Python's lock for seconds, and the browser wants both.

    Only the first page that a server sends waits here; whoever warms the server up waits for ``SETTINGS_SENT``.
    """
    if not SETTINGS_SENT.is_set() and "torch" not in sys.modules:
        time.sleep(APPEAR_SECONDS)
    SETTINGS_SENT.set()


def place_notes(view: View, run: Run) -> list[str]:
    """A sentence where the link asks for a layer or head that this model does not have."""
    layers, heads = run.trace.layers, run.trace.query_heads
    if view.layer < layers and view.head < heads:
        return []
    return [f"This model has layers 0–{layers - 1} and query heads 0–{heads - 1}; the nearest ones are shown."]


def link_to(view: View) -> str:
    """The page's address with every setting in it."""
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(view.words())}"


def change_view(view: View, change: Mapping[str, str]) -> None:
    """Adopt the view with some of its URL parameters changed; None of the others is lost."""
    query = {name: word for name, word in view.words().items() if name not in dropped_by(change)}
    adopt(view_from_query({**query, **change})[0])
    st.session_state["chosen"] = True


def dropped_by(change: Mapping[str, str]) -> set[str]:
    """A new policy on a side starts with that side's other choices as the ordinary ones."""
    sides = [name.removesuffix("policy") for name in change if name.endswith("policy")]
    return {side + kind for side in sides for kind in SETUP_PARSERS if kind != "policy"}


def show(drawing: Drawing, key: str) -> None:
    """A figure with its alt text, and its data to download."""
    chart(drawing, key)
    download(drawing.table, key)


def warm() -> None:
    """Compute what the first visitor sees, before the page opens."""
    page = Page(View(), None)
    keys = [runs.key_for(experiment, page.view.layer, needs_maps=True) for experiment in page.sides]
    jobs = runs.jobs_for("warm", page.sides, keys)
    while not all(job.done.is_set() for job in jobs):
        for job in jobs:
            job.seen()
        time.sleep(0.2)
    for job in jobs:
        if job.error is not None:
            raise job.error

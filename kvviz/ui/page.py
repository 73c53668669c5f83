"""The frame that every page shares: settings, navigation, waiting for a run, figures with their numbers, prose."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from kvviz.experiment import Experiment
from kvviz.ui import runs
from kvviz.ui.jobs import Job
from kvviz.ui.runs import Run
from kvviz.ui.sidebar import Sidebar, model_card
from kvviz.ui.state import View, adopt, take_url, view_from_query, write_url

PROSE = Path(__file__).parent.parent / "text" / "en"
PAGES = {"app.py": "Start", "pages/1_Attention.py": "Attention", "pages/4_Cache.py": "Cache"}
NO_TOOLBAR = {"displayModeBar": False}


@dataclass
class Page:
    """An open page: what is to be shown, and where."""

    view: View
    problems: list[str]
    main: Any = field(default=None)

    @property
    def sides(self) -> list[tuple[str, Experiment]]:
        """A and B as experiments: they differ in the setup alone."""
        b = replace(self.view.experiment, setup=self.view.versus)
        return [("a", self.view.experiment), ("b", b)]

    def runs(self, *, layer: int | None = None) -> tuple[Run, Run]:
        """The runs of A and B, waited for with a progress bar; the page ends here when there is none to show.

        ``layer``: take the maps of all heads of that layer too.
        """
        slot = st.empty()
        jobs = runs.jobs_for(owner(), [experiment for _, experiment in self.sides], layer)
        wait_for(jobs, slot)
        for job in jobs:
            if job.error is not None:
                slot.error(runs.sentence(job.error))
                st.stop()
        slot.empty()
        a, b = (job.result for job in jobs)
        for note in dict.fromkeys((*a.notes, *b.notes)):
            st.caption(note)
        return a, b

    def headline(self, sentence: str) -> None:
        """The one sentence with the numbers of this result."""
        st.markdown(f"#### {plain(sentence)}")

    def lesson(self, name: str) -> None:
        """How to read the figures, folded, and the formula."""
        text, _, formula = prose(name).partition("\n---\n")
        with st.expander("How to read this"):
            st.markdown(text)
        if formula:
            st.markdown(formula)

    def try_this(self, ideas: Sequence[tuple[str, str, dict[str, str]]]) -> None:
        """Buttons that set the experiment: (label, what to watch, the URL parameters that change)."""
        st.subheader("Try this", anchor=False)
        columns = st.columns(min(len(ideas), 3))
        for place, (label, watch, change) in enumerate(ideas):
            with columns[place % len(columns)]:
                st.button(label, on_click=change_view, args=(self.view, change), key=f"try.{place}", width="stretch")
                st.caption(watch)


def open_page(name: str, question: str) -> Page:
    """Set up the page called ``name`` and read what is to be shown; must be the first call of a page."""
    st.set_page_config(page_title=f"kvviz · {name}", layout="wide", initial_sidebar_state="auto")
    take_url(name)
    with st.sidebar:
        st.markdown("**kvviz**")
        links = st.container(gap=None)
    sidebar = Sidebar([])
    view = sidebar.draw()
    write_url(view)
    with links:
        for path, title in PAGES.items():
            st.page_link(path, label=title, query_params=view.words())
    with st.sidebar:
        st.divider()
        model_card(view.experiment.model, view.experiment.dtype)
        st.caption("The address bar holds every setting: copy it to share exactly this picture.")
    if name != "Start":
        st.title(name, anchor=False)
        st.caption(question)
    for note in st.session_state.pop("link_notes", []):
        st.warning(note)
    for problem in sidebar.problems:
        st.warning(f"{problem} The picture shows the last settings that worked.")
    return Page(view, sidebar.problems)


def owner() -> str:
    """A name for this browser session, for the worker to know whose wishes are whose."""
    if "owner" not in st.session_state:
        st.session_state["owner"] = uuid.uuid4().hex
    return str(st.session_state["owner"])


def wait_for(jobs: Sequence[Job], slot: Any) -> None:
    """Wait in the script, in short steps: every step is a point where a newer setting ends this run.

    Meanwhile the browser keeps the old figures, greyed.
    """
    while not all(job.done.is_set() for job in jobs):
        current = next(job for job in jobs if not job.done.is_set())
        done = sum(job.done.is_set() for job in jobs)
        slot.progress((done + current.share) / len(jobs), text=plain(current.message))
        current.wait(0.1)


def change_view(view: View, change: dict[str, str]) -> None:
    """Adopt the view with some of its URL parameters changed; None of the others is lost."""
    query = {name: word for name, word in view.words().items() if name not in dropped_by(change)}
    adopt(view_from_query({**query, **change})[0])
    st.session_state["chosen"] = True


def dropped_by(change: dict[str, str]) -> set[str]:
    """A new policy on a side starts with the ordinary pattern, positions, storage and softmax."""
    sides = [name.removesuffix("policy") for name in change if name.endswith("policy")]
    return {side + kind for side in sides for kind in ("pattern", "positions", "storage", "softmax")}


def show(fig: go.Figure, key: str, csv: Callable[[], str] | None = None) -> None:
    """A figure with its alt text, and its numbers as CSV made when asked for."""
    st.plotly_chart(fig, key=key, config=NO_TOOLBAR, alt=fig.layout.meta["alt"])
    if csv is not None:
        st.download_button("CSV", csv, file_name=f"kvviz-{key}.csv", mime="text/csv", key=f"{key}.csv", type="tertiary")


def plain(sentence: str) -> str:
    """Text for Markdown with its signs made harmless: tokens may hold $, *, [ or <."""
    for sign in "\\`*_{}[]<>()#+-.!|$~:":
        sentence = sentence.replace(sign, "\\" + sign)
    return sentence


@cache
def prose(name: str) -> str:
    """A lesson from ``kvviz/text/en``."""
    return (PROSE / f"{name}.md").read_text(encoding="utf-8")


def warm() -> None:
    """Compute what the first visitor sees, before the page opens."""
    view = View()
    for experiment in (view.experiment, replace(view.experiment, setup=view.versus)):
        for job in runs.jobs_for("warm", [experiment], None):
            while not job.wait(0.5):
                pass
            if job.error is not None:
                raise job.error

"""The Exactness page's switches, and its main figure with its table, growing line by line."""

from __future__ import annotations

from typing import Any

import streamlit as st

from kvviz.choices.experiment import TOKENS_LIMIT
from kvviz.figures.frame import coming
from kvviz.ui.exactness import reuse
from kvviz.ui.exactness.settings import MOST_SHIFT, MOST_WINDOW, ExactnessSettings
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.state import View, kept_setting
from kvviz.ui.shell.words import plain

SWITCHES = {
    "prefix": "Another token",
    "weights": "Other weights",
    "positions": "Shifted positions",
    "rule": "Another rule",
    "dtype": "Another format",
}
PLAIN = {"displayModeBar": False}


def switches() -> None:
    """One switch a condition, and how much of it."""
    for column, (name, label) in zip(st.columns(5), SWITCHES.items(), strict=True):
        column.toggle(label, **kept_setting(ExactnessSettings, name))
    with st.expander("How much is changed"):
        columns = st.columns(4)
        try:
            looks: dict[str, Any] = {"placeholder": f"{reuse.EARLY}"}
            whole_number(columns[0], "Token replaced (position)", "break_at", None, 0, TOKENS_LIMIT, **looks)
            whole_number(columns[1], "Weights changed by (%)", "break_percent", 2, 0, 100)
            whole_number(columns[2], "Positions shifted by", "break_shift", 1, 0, MOST_SHIFT)
            whole_number(columns[3], "Window of the prefix (tokens)", "break_window", 32, 1, MOST_WINDOW)
        except ValueError as error:
            st.error(str(error))


class Figure:
    """The lines in ``slot`` and their sentence in ``heading``, as far as they are computed."""

    def __init__(self, view: View, heading: Any, slot: Any) -> None:
        self.jobs, self.heading, self.slot = reuse.wanted(view), heading, slot
        self.count_from, self.drawn = view.experiment.text.count_from, 0

    def grow(self) -> None:
        """Draw them where there are more than before."""
        lines = reuse.there(self.jobs)
        if len(lines) > self.drawn:
            self.drawn = len(lines)
            drawing = reuse.figure(lines, self.count_from)
            self.slot.plotly_chart(drawing.figure, config=PLAIN, alt=drawing.alt)

    def end(self) -> list[reuse.Reused]:
        """Draw all with their sentence; the lines that are there."""
        lines = reuse.there(self.jobs)
        if not lines:
            self.slot.empty()
            return []
        self.heading.markdown(f"## {plain(reuse.headline(lines, self.count_from))}")
        with self.slot.container():
            show(reuse.figure(lines, self.count_from), "gap-per-token")
        return lines


def draw(view: View, heading: Any, slot: Any, waits: Any) -> list[reuse.Reused]:
    """The main figure, and the lines in it; progress and Cancel in ``waits``."""
    shown = Figure(view, heading, slot)
    if "reused" not in st.session_state:
        slot.plotly_chart(coming().figure, config=PLAIN)
    waiting.extras(shown.jobs, waits, shown.grow)
    st.session_state["reused"] = True
    return shown.end()


def draw_table(view: View, lines: list[reuse.Reused]) -> None:
    """Where each line breaks and by how much, and what was compared with what."""
    if lines:
        st.markdown(reuse.table(lines, view.experiment.text.count_from))
        st.caption(plain(reuse.explained(lines)))

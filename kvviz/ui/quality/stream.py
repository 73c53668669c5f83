"""The page's main figure: the loss of every token along a stream, one line a setup, growing while the model reads."""

from __future__ import annotations

from typing import Any

import streamlit as st

from kvviz.figures.frame import coming
from kvviz.figures.series import HEIGHT
from kvviz.ui.quality.settings import (
    STREAM_ENV,
    STREAM_LEAST,
    STREAM_MOST,
    STREAM_WORDS,
    QualitySettings,
    stream_limit,
    usual_tokens,
)
from kvviz.ui.quality.setups import compared
from kvviz.ui.quality.stream_run import Read, stream_job, there
from kvviz.ui.quality.stream_words import figure, headline, unfinished
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.state import View, kept_setting
from kvviz.ui.shell.words import plain

PLAIN = {"displayModeBar": False}


def controls() -> None:
    """What is read, how far, under which further setups, and whether every token is drawn."""
    left, middle, right = st.columns([3, 2, 2], vertical_alignment="bottom")
    words = {"format_func": STREAM_WORDS.__getitem__, **kept_setting(QualitySettings, "stream_text")}
    left.selectbox("The stream is", list(STREAM_WORDS), help=meaning("stream"), **words)
    most = stream_limit()
    who = f"This server reads at most {most:,}; whoever runs it can allow up to {STREAM_MOST:,} with {STREAM_ENV}."
    looks: dict[str, Any] = {"step": 256, "help": who}
    try:
        whole_number(middle, "Tokens of the stream", "stream_tokens", usual_tokens(), STREAM_LEAST, most, **looks)
    except ValueError as error:
        st.error(str(error))
    right.toggle("Show every token", **kept_setting(QualitySettings, "every"))


class Lines:
    """The lines of the setups in ``slot`` and their sentence in ``heading``, as far as they are read."""

    def __init__(self, view: View, heading: Any, slot: Any) -> None:
        self.named, self.heading, self.slot = compared(view), heading, slot
        self.jobs = [stream_job(view, one.setup) for one in self.named]
        self.is_every = view.of(QualitySettings).every
        self.drawn: list[list[int]] = []  # how far the lines were each time: Streamlit refuses the same figure twice

    def read(self) -> list[Read]:
        """What has been read so far, finished or not."""
        return there(self.named, [key for key, _ in self.jobs])

    def grow(self) -> None:
        """Draw them where they have grown since."""
        found = self.read()
        lengths = [len(stream.losses) for _, stream in found]
        if found and lengths not in self.drawn:
            self.drawn.append(lengths)
            drawing = figure(found, self.is_every)
            self.slot.plotly_chart(drawing.figure, config=PLAIN, alt=drawing.alt)
            self.say(found)

    def say(self, found: list[Read]) -> None:
        self.heading.markdown(f"## {plain(headline(found))}")

    def end(self) -> None:
        """Draw them with their numbers, and say what is to be known of them."""
        found = self.read()
        if not found:
            self.slot.empty()
            return
        self.say(found)
        notes = [*(note for _, stream in found for note in stream.notes), unfinished(found)]
        with self.slot.container():
            show(figure(found, self.is_every), "loss-along-the-stream")
            for note in filter(None, dict.fromkeys(notes)):
                st.caption(note)


def draw(view: View, heading: Any, slot: Any, waits: Any) -> None:
    """The lines in ``slot`` and their sentence in ``heading``, growing; progress and Cancel in ``waits``."""
    lines = Lines(view, heading, slot)
    if "streamed" not in st.session_state:
        slot.plotly_chart(coming(HEIGHT).figure, config=PLAIN)
    waiting.extras(lines.jobs, waits, lines.grow)
    lines.end()
    st.session_state["streamed"] = True

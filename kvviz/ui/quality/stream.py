"""The page's main figure: the loss of every token along a stream, one line a setup, growing while the model reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.choices.linked_text import Text
from kvviz.choices.setup import Setup
from kvviz.choices.texts import LONG_TEXT
from kvviz.figures import Drawing
from kvviz.figures.frame import coming
from kvviz.figures.series import HEIGHT, Series, series_lines
from kvviz.figures.theme import LineName
from kvviz.text.signs import unique_labels
from kvviz.ui.quality.common import first_tokens, mean_after, model_for
from kvviz.ui.quality.settings import (
    STREAM_ENV,
    STREAM_LEAST,
    STREAM_MOST,
    STREAM_WORDS,
    QualitySettings,
    stream_limit,
    usual_tokens,
)
from kvviz.ui.quality.setups import Named, compared
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.runs import WORKER, Key
from kvviz.ui.shell.state import View, kept_setting
from kvviz.ui.shell.words import joined, plain, plural, setup_words

SMOOTH_SHARE = 16  # each point is the mean of one part in so many of the stream
SAME = 5e-4  # nats: what the third digit would show, and float order may make


@dataclass(frozen=True, eq=False)
class Stream:
    """What a setup lost along the stream; while it still reads there are fewer losses, and no bytes."""

    losses: NDArray[np.float64]  # (T − 1,) nats
    tokens: int  # T
    prompt_tokens: int
    labels: tuple[str, ...]  # (T,) of the tokens, distinct
    cache_bytes: int | None = None  # at the end
    seconds: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return self.losses.nbytes + 80 * len(self.labels)

    @property
    def is_whole(self) -> bool:
        """Whether it was read to the end."""
        return self.cache_bytes is not None

    @property
    def late_loss(self) -> float:
        """Mean after the prompt, in nats; NaN where the reading has not come so far."""
        return mean_after(self.losses, self.prompt_tokens)


Read = tuple[Named, Stream]


def streamed_text(view: View) -> Text:
    """The text that the stream reads."""
    is_own = view.of(QualitySettings).stream_text == "own"
    return view.experiment.text if is_own else Text.of_preset(LONG_TEXT)


def stream_job(view: View, setup: Setup) -> tuple[Key, Callable[[Job], Result]]:
    """The stream under one setup: its key and how to compute it."""
    model, text = view.experiment.model, streamed_text(view)
    tokens = min(view.of(QualitySettings).stream_tokens, stream_limit())

    def compute(job: Job) -> Result:
        from kvviz.models.tokens import labels
        from kvviz.run.replay import replay

        loaded = model_for(model, [setup], job)
        ids = first_tokens(model, text.content, tokens)
        names = tuple(unique_labels(labels(loaded.tokenizer, list(ids)), text.count_from))
        doing = f"{loaded.card.title} reads {plural(len(ids), 'token')} under {setup_words(setup)}"
        prompt = max(1, len(ids) // 2)

        def grow(losses: NDArray[np.float64]) -> None:
            job.partial = Stream(losses, len(ids), prompt, names)

        trace = replay(
            loaded.model,
            ids,
            setup,
            prompt_tokens=prompt,
            progress=lambda share: job.report(doing, share),
            is_cancelled=job.is_unwanted,
            on_losses=grow,
        )
        notes = () if len(ids) == tokens else (f"The text has only {plural(len(ids), 'token')}; all are used.",)
        found = Stream(
            np.asarray(trace.nll, dtype=np.float64),
            len(ids),
            prompt,
            names,
            trace.cache_bytes,
            trace.seconds,
            (*notes, *trace.notes),
        )
        return Result(found, found.bytes)

    return ("stream", model, tokens, text.sha256, text.count_from, str(setup)), compute


def there(named: Sequence[Named], keys: Sequence[Key]) -> list[Read]:
    """What has been read so far, finished or not."""
    found = []
    for one, key in zip(named, keys, strict=True):
        result = WORKER.result(key)
        stream = WORKER.partial(key) if result is None else result.value
        if stream is not None:
            found.append((one, stream))
    return found


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


def draw(view: View, heading: Any, slot: Any, waits: Any) -> list[Read]:
    """The lines in ``slot`` and their sentence in ``heading``, growing; progress and Cancel in ``waits``.

    Returns what was read, if only in part.
    """
    named = compared(view)
    jobs = [stream_job(view, one.setup) for one in named]
    keys = [key for key, _ in jobs]
    is_every = view.of(QualitySettings).every
    if "streamed" not in st.session_state:
        slot.plotly_chart(coming(HEIGHT).figure, config={"displayModeBar": False})

    drawn_at: list[list[int]] = [[]]

    def grow() -> None:
        found = there(named, keys)
        lengths = [len(stream.losses) for _, stream in found]
        if found and lengths != drawn_at[-1]:
            drawn_at.append(lengths)
            drawing = figure(found, is_every)
            slot.plotly_chart(drawing.figure, config={"displayModeBar": False}, alt=drawing.alt)
            heading.markdown(f"## {plain(headline(found))}")

    waiting.extras(jobs, waits, grow)
    found = there(named, keys)
    if not found:
        slot.empty()
        return found
    st.session_state["streamed"] = True
    heading.markdown(f"## {plain(headline(found))}")
    with slot.container():
        show(figure(found, is_every), "loss-along-the-stream")
        for note in dict.fromkeys(note for _, stream in found for note in stream.notes):
            st.caption(note)
        if words := unfinished(found):
            st.caption(words)
    return found


def figure(found: Sequence[Read], is_every: bool = False) -> Drawing:
    """The loss along the stream, a line a setup; each point is the mean of the losses around it."""
    first = found[0][1]
    series: list[Series] = [(one.label, one.letter, np.concatenate([[np.nan], stream.losses])) for one, stream in found]
    longest = max(len(values) for _, _, values in series)
    return drawn(
        series_lines,
        series,
        y_title="loss (nats)",
        x_title="token (position in the stream)",
        smooth_over=max(1, first.tokens // SMOOTH_SHARE),
        prompt_tokens=first.prompt_tokens,
        labels=first.labels[:longest],
        title="Loss along the stream",
        from_zero=True,
        length=first.tokens,
        is_every=is_every,
    )


def unfinished(found: Sequence[Read]) -> str:
    """Up to which token each stopped line was read."""
    parts = [
        f"{one.letter.upper()} up to token {len(stream.losses):,} of {stream.tokens:,}"
        for one, stream in found
        if not stream.is_whole
    ]
    return f"Not read to the end: {joined(parts)}." if parts else ""


def headline(found: Sequence[Read]) -> str:
    """What A loses against B and holds for it, and which of the added setups loses least."""
    ends = {one.letter: (one, stream) for one, stream in found}
    if "a" not in ends or "b" not in ends:
        one, stream = found[0]
        return f"{one.label} has read {len(stream.losses):,} of {plural(stream.tokens, 'token')} so far."
    (a, a_stream), (b, b_stream) = ends["a"], ends["b"]
    where, losses = compared_losses([stream for _, stream in ends.values()])
    loss = dict(zip(ends, losses, strict=True))
    start = f"{where} A ({setup_words(a.setup)}) {lost_words(loss['a'] - loss['b'])} B ({setup_words(b.setup)})"
    added = {letter: loss[letter] for letter in ends if letter not in "ab"}
    return f"{start}{held(a_stream, b_stream)}{best_words(added, ends, loss['b'])}."


def compared_losses(streams: Sequence[Stream]) -> tuple[str, list[float]]:
    """Mean losses over the second half; where it is not read to the end, over what all have read."""
    tokens, read = streams[0].tokens, min(len(stream.losses) for stream in streams)
    if all(stream.is_whole for stream in streams):
        return f"In the second half of {plural(tokens, 'token')}", [stream.late_loss for stream in streams]
    means = [float(np.nanmean(stream.losses[:read])) for stream in streams]
    return f"In the first {read:,} of {plural(tokens, 'token')}", means


def lost_words(difference: float) -> str:
    if abs(difference) < SAME:
        return "loses as much as"
    return f"loses {abs(difference):.3g} nats a token {'more' if difference > 0 else 'less'} than"


def held(a: Stream, b: Stream) -> str:
    """``, with 12% of its cache bytes at the end``; nothing where one is not there to compare."""
    if a.cache_bytes is None or not b.cache_bytes:
        return ""
    share = a.cache_bytes / b.cache_bytes
    return f", with {share:.{int(share < 0.1)}%} of its cache bytes at the end"


def best_words(added: dict[LineName, float], ends: dict[LineName, Read], b_loss: float) -> str:
    """The best of the added setups, against B."""
    if not added:
        return ""
    letter = min(added, key=added.__getitem__)
    which = "" if len(added) == 1 else ", the best of the others,"
    return f"; {letter.upper()} ({setup_words(ends[letter][0].setup)}){which} {lost_words(added[letter] - b_loss)} B"

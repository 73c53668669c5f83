"""What the Quality page says in words, and its main figure."""

from __future__ import annotations

import numpy as np

from kvviz.figures import Drawing
from kvviz.figures.series import Series, series_lines
from kvviz.figures.theme import Side
from kvviz.ui.quality.common import has_losses, late_loss
from kvviz.ui.quality.settings import QualitySettings
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import setup_words, side_words

SMOOTH_SHARE = 16  # each point of the stream is the mean of one part in so many of the text


def headline(a: Run, b: Run) -> str:
    """What A loses against B after the prompt, and what it holds for it."""
    if not (has_losses(a.trace) and has_losses(b.trace)):
        return "No token comes after the prompt, so there is no loss to compare: end the prompt earlier."
    loss = late_loss(a.trace) - late_loss(b.trace)
    words = f"loses {abs(loss):.3g} nats a token {'more' if loss > 0 else 'less'} than"
    words = "loses as much as" if abs(loss) < 5e-4 else words
    held = (
        f", with {a.trace.cache_bytes / b.trace.cache_bytes:.0%} of its cache bytes at the end"
        if b.trace.cache_bytes
        else ""
    )
    return f"After the prompt A ({setup_words(a.trace.setup)}) {words} B ({setup_words(b.trace.setup)}){held}."


def needs_maps(view: View) -> bool:
    """Whether the open part looks at B's attention weights."""
    return view.of(QualitySettings).part == "words"


def stream_figure(a: Run, b: Run) -> Drawing:
    """The loss of every token under A and B, smoothed along the text."""
    sides: list[tuple[str, Side, Run]] = [("A", "a", a), ("B", "b", b)]
    width = max(1, a.trace.tokens // SMOOTH_SHARE)
    series: list[Series] = [
        (side_words(name, run.trace.setup), side, np.concatenate([[np.nan], run.trace.nll]))
        for name, side, run in sides
    ]
    return drawn(
        series_lines,
        series,
        y_title="loss (nats)",
        x_title="token (position in the text)",
        smooth_over=width,
        prompt_tokens=a.trace.prompt_tokens,
        count_from=a.count_from,
        labels=a.labels,
        title="Loss along the text",
        from_zero=True,
    )

"""The lines of the stream, and what the page says of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvviz.figures import Drawing
from kvviz.figures.series import Series, series_lines
from kvviz.figures.theme import LineName
from kvviz.ui.quality.common import means_after
from kvviz.ui.quality.stream_run import Read, Stream
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.words import joined, plural, setup_words

SMOOTH_SHARE = 16  # each point is the mean of one part in so many of the stream
SAME = 5e-4  # nats: what the third digit would show, and float order may make


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
    """Mean losses over the second half; where it is not read to the end, over what all have read.

    Only tokens that all of them computed count.
    """
    tokens, read = streams[0].tokens, min(len(stream.losses) for stream in streams)
    is_whole = all(stream.is_whole for stream in streams)
    means = means_after([stream.losses[:read] for stream in streams], streams[0].prompt_tokens - 1 if is_whole else 0)
    return f"In the {'second half' if is_whole else f'first {read:,}'} of {plural(tokens, 'token')}", means


def lost_words(difference: float) -> str:
    if abs(difference) < SAME:
        return "loses as much as"
    return f"loses {abs(difference):.3g} nats a token {'more' if difference > 0 else 'less'} than"


def held(a: Stream, b: Stream) -> str:
    """``, with 12% of its cache bytes at the end``; nothing where one is not there to compare."""
    if a.cache_bytes is None or not b.cache_bytes:
        return ""
    if a.cache_bytes == b.cache_bytes:
        return ", with as many cache bytes at the end"
    share = a.cache_bytes / b.cache_bytes
    return f", with {share:.{int(share < 0.1)}%} of its cache bytes at the end"


def best_words(added: dict[LineName, float], ends: dict[LineName, Read], b_loss: float) -> str:
    """The best of the added setups, against B."""
    if not added:
        return ""
    letter = min(added, key=added.__getitem__)
    which = "" if len(added) == 1 else ", the best of the others,"
    return f"; {letter.upper()} ({setup_words(ends[letter][0].setup)}){which} {lost_words(added[letter] - b_loss)} B"

"""The lines of the Sinks page."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kvviz.figures import Drawing
from kvviz.figures.series import Series, series_lines
from kvviz.measures.sinks import mean_known, sink_mass_along
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.words import side_words
from kvviz.ui.sinks.view import shares

Floats = NDArray[np.floating]


def two_lines(a: Run, b: Run, of_a: Floats, of_b: Floats) -> list[Series]:
    """A and B under their names."""
    return [(side_words("A", a.trace.setup), "a", of_a), (side_words("B", b.trace.setup), "b", of_b)]


def along_figure(a: Run, b: Run, sinks: int, layer: int) -> Drawing:
    """What each query gives to the first tokens."""
    return drawn(
        series_lines,
        two_lines(a, b, mass_along(a, sinks, layer), mass_along(b, sinks, layer)),
        y_title="sink mass (share of the attention)",
        x_title="query (position)",
        count_from=a.count_from,
        labels=a.labels,
        title=f"Sink mass along the text, layer {layer}",
        from_zero=True,
    )


def mass_along(run: Run, sinks: int, layer: int) -> Floats:
    assert run.trace.first_weights is not None
    return sink_mass_along(run.trace.first_weights, sinks, layer)


def denominator_figure(a: Run, b: Run, sinks: int) -> Drawing:
    """What the first tokens hold of the denominator, layer by layer."""
    return drawn(
        series_lines,
        two_lines(a, b, mean_known(shares(a, sinks)), mean_known(shares(b, sinks))),
        y_title="share of the denominator",
        x_title="layer",
        title="Share of the softmax denominator by layer",
        from_zero=True,
    )


def norms_figure(run: Run, name: Literal["keys", "values"], layer: int, kv_head: int) -> Drawing:
    """How long the keys or values of one KV head are."""
    norms = run.trace.key_norm if name == "keys" else run.trace.value_norm
    assert norms is not None
    lines: list[Series] = [(f"length of {name}", "a", norms[layer, kv_head])]
    return drawn(
        series_lines,
        lines,
        y_title="length (Euclidean norm)",
        x_title="token (position)",
        count_from=run.count_from,
        labels=run.labels,
        title=f"Length of {name}, layer {layer}, KV head {kv_head}",
    )

"""The maps of the Attention page, all of one head or of the mean of its layer's heads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvviz.figures import Drawing, shared_top
from kvviz.figures.attention import attention_map, visibility
from kvviz.figures.difference import difference_map
from kvviz.figures.scales import ScaleName
from kvviz.ui.attention.view import CELLS, Floats
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.words import side_words


def map_figures(runs: Sequence[Run], maps: Sequence[Floats], scale: ScaleName) -> list[Drawing]:
    """A and B in equal colours."""
    top = shared_top(maps, scale)
    titles = [side_words(side, run.trace.setup) for side, run in zip("AB", runs, strict=True)]
    return [
        drawn(attention_map, weights, run.labels, scale=scale, top=top, title=title, limit=CELLS)
        for run, weights, title in zip(runs, maps, titles, strict=True)
    ]


def difference_figure(run: Run, maps: Sequence[Floats], place: str, scale: ScaleName) -> Drawing:
    """A minus B, on the scale that the maps have."""
    a, b = maps
    return drawn(difference_map, a, b, run.labels, scale=scale, title=f"A − B, {place}", limit=CELLS)


def visibility_figure(run: Run, weights: Floats) -> Drawing:
    """Which keys each query of a short text sees under A."""
    title = f"What each query may see. {side_words('A', run.trace.setup)}"
    return drawn(visibility, np.isfinite(weights), run.labels, title=title)

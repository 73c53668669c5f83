"""The figures of the Receptive field page; each says by what influence is measured in it."""

from __future__ import annotations

from collections.abc import Sequence

from kvviz.figures import Drawing
from kvviz.figures.distance import distance_lines
from kvviz.figures.reach import cone_map, depth_map, parts_map
from kvviz.ui.attention.view import quoted
from kvviz.ui.receptive_field.runs import Pair, Seen
from kvviz.ui.receptive_field.settings import MEASURED
from kvviz.ui.receptive_field.view import distance_series, layers_words, parts, shares_by
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.words import side_words


def depths(run: Run, seen: Seen, by: str, mark: int) -> Drawing:
    """What the token depends on after each number of layers; that of the sidebar's layer is framed."""
    query, found = seen.found.query, seen.found
    title = f"What token {quoted(run, query)} depends on, by {MEASURED[by]}. {side_words('A', run.trace.setup)}"
    labels = run.labels[: query + 1]
    return drawn(depth_map, shares_by(seen, by), seen.reach, found.depths, labels, title=title, mark=mark)


def cone(run: Run, seen: Seen, path: Sequence[int]) -> Drawing:
    """How the input gets to the token level by level; rollout has no such levels."""
    query = seen.found.query
    title = f"How the input reaches token {quoted(run, query)}, layer by layer under A, by gradient"
    return drawn(cone_map, seen.found.levels[0], seen.cone[0], run.labels[: query + 1], path=path, title=title)


def distance(pair: Pair, runs: tuple[Run, Run], depth: int, by: str) -> Drawing:
    """Influence against distance under A and B."""
    token = quoted(runs[0], pair.a.found.query)
    title = f"Influence on token {token} by {MEASURED[by]}, through {layers_words(depth)}"
    return drawn(distance_lines, distance_series(pair, runs, by), title=title)


def sublayers(run: Run, seen: Seen, depth: int) -> Drawing:
    """What each part of the last layer takes from which position."""
    query = seen.found.query
    title = f"The parts of layer {depth - 1}: which positions influence token {quoted(run, query)}, by gradient"
    return drawn(parts_map, parts(seen), run.labels[: query + 1], title=title)

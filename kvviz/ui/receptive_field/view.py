"""What the Receptive field page says in words, and the lines of its figures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kvviz.figures.series import Series
from kvviz.measures.influence import Floats, beyond, by_distance, nearest, relay
from kvviz.measures.reach import span
from kvviz.ui.attention.view import query_notes, query_of, quoted
from kvviz.ui.receptive_field.runs import ALL_DEPTHS, Pair, Seen
from kvviz.ui.receptive_field.settings import MEASURED, ReachSettings
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plural, setup_words, side_words, spans

PARTS = (0.99, 0.9, 0.5)  # of the influence, for the headline
FEW_POSITIONS = 24


def place(view: View, run: Run) -> tuple[int, int]:
    """The query, and how many layers are passed: the sidebar's layer is the last of them."""
    return query_of(view, run), min(view.layer, run.trace.layers - 1) + 1


def layers_words(depth: int) -> str:
    """``5 layers (0–4)``; layers count from 0."""
    return "1 layer (0)" if depth == 1 else f"{depth} layers (0–{depth - 1})"


def shares_by(seen: Seen, by: str) -> Floats:
    """(D, T): the shares of the input positions, measured as chosen."""
    return seen.found.rollout if by == "rollout" else seen.found.gradient


def headline(run: Run, seen: Seen, query: int, depth: int, by: str) -> str:
    """How far it could see and how near what mattered was."""
    reach, row = seen.reach[0], shares_by(seen, by)[0]
    # a sink far away holds some per cent, and then the nearest 99 % are everything, which says nothing
    telling = (part for part in PARTS if span(reach) <= FEW_POSITIONS or nearest(row, part) <= span(reach) / 2)
    part = next(telling, PARTS[0])
    near = nearest(row, part)
    can = "only on itself" if reach.sum() == 1 else f"on {plural(int(reach.sum()), 'position')} (its own included)"
    mattered = "itself" if near == 1 else f"the nearest {near}"
    return (
        f"Through {layers_words(depth)} token {quoted(run, query)} can depend {can}; {part:.0%} of the influence "
        f"by {MEASURED[by]} comes from {mattered} (policy A: {setup_words(run.trace.setup)})."
    )


def full_words(seen: Seen) -> str:
    """Layers through which everything is reached at once, where not all are such."""
    depth = max(seen.found.depths)
    full = seen.full_layers
    if not full or len(full) == depth or seen.found.query == 0:
        return ""
    word = "Layer" if len(full) == 1 else "Layers"
    lets = "lets" if len(full) == 1 else "let"
    return f"{word} {spans(full)} of A {lets} the token see every position before it; the other layers do not."


def source_of(view: View, seen: Seen) -> int:
    """Where the path begins: as asked, or the nearest to it in the reach; else the farthest that has to be relayed."""
    inside = np.isfinite(seen.found.strength[0])
    wanted = view.of(ReachSettings).path_from
    if wanted is not None and wanted <= seen.found.query:
        places = np.flatnonzero(inside)
        return int(places[np.abs(places - wanted).argmin()])
    relayed = inside & ~direct_of(seen)
    return int(np.flatnonzero(relayed if relayed.any() else inside)[0])


def notes(view: View, run: Run, seen: Seen) -> list[str]:
    """What is not as it was asked for, a sentence each."""
    exact = run.trace.setup.storage.is_exact
    rounded = [] if exact else ["Gradients are taken without quantised storage, because rounding has no gradient."]
    return rounded + place_notes(view, run, seen)


def place_notes(view: View, run: Run, seen: Seen) -> list[str]:
    """A sentence for each of the two positions asked for that is out of place; both stay as they were set."""
    wanted, source, query = view.of(ReachSettings).path_from, source_of(view, seen), seen.found.query
    notes = query_notes(view, run)
    if wanted is not None and wanted > query:
        notes.append(
            f"The path cannot begin at position {wanted}, because the token asked about is at {query} and no token "
            f"depends on later ones; it begins at {quoted(run, source)} instead."
        )
    elif wanted is not None and wanted != source:
        notes.append(
            f"The token does not depend on {quoted(run, wanted)}; the path begins at the nearest position on which it "
            f"does, {quoted(run, source)}."
        )
    return notes


def direct_of(seen: Seen) -> NDArray[np.bool_]:
    """What the token sees in the last layer passed, without any relay."""
    return seen.cone[0, max(seen.found.depths) - 1]


def path_of(seen: Seen, source: int) -> list[int]:
    return relay(seen.found.came_from[0], seen.found.query, source)


def path_words(run: Run, seen: Seen, path: list[int], by: str) -> str:
    """The path hop by hop, the weight of each, and the strength of the whole."""
    moves = [level for level in range(1, len(path)) if path[level] != path[level - 1]]
    source, strength = path[0], float(np.exp(seen.found.strength[0][path[0]]))
    stops = [f"{quoted(run, source)}"]
    stops += [f"—layer {level - 1}→ {quoted(run, path[level])}" for level in moves]
    many = f"{plural(len(moves), 'hop')}; product of all weights {strength:.2g}"
    share = float(shares_by(seen, by)[0][source])
    return (
        f"Strongest path from {quoted(run, source)} ({many}; influence by {MEASURED[by]} {share:.2g}): "
        f"{' '.join(stops)}. The weight of a hop is half the mean attention over the heads; the other half stays on "
        "the residual stream."
    )


def distance_series(pair: Pair, runs: tuple[Run, Run], by: str) -> list[Series]:
    """A and B, nearest first."""
    names = [side_words(side, run.trace.setup) for side, run in zip("AB", runs, strict=True)]
    return [
        (names[0], "a", by_distance(shares_by(pair.a, by)[0])),
        (names[1], "b", by_distance(shares_by(pair.b, by)[0])),
    ]


def distance_words(pair: Pair, depth: int, by: str) -> str:
    """Relayed against direct: the share of the positions that A's own layer cannot see."""
    direct = direct_of(pair.a)
    if direct.all():
        return f"In layer {depth - 1} the token sees all {len(direct)} positions under A: nothing has to be relayed."
    relayed, other = (beyond(shares_by(side, by)[0], direct) for side in (pair.a, pair.b))
    return (
        f"In layer {depth - 1} the token itself sees {int(direct.sum())} of {len(direct)} positions under A. All other "
        f"positions together have {relayed:.2%} of the influence by {MEASURED[by]} under A, where it is relayed by "
        f"other tokens, and {other:.2%} under B."
    )


def parts(seen: Seen) -> dict[str, Floats]:
    """The parts of the layer from top to bottom of the figure."""
    names = {"layer": "whole layer", "FFN": "FFN", "attention": "attention", "residual": "residual"}
    return {title: seen.found.sublayers[name] for name, title in names.items() if name in seen.found.sublayers}


def parts_words(seen: Seen, depth: int) -> str:
    """How much each part brings from other positions."""
    away = {name: 1 - float(part[-1]) for name, part in seen.found.sublayers.items()}
    still = " and ".join(name for name in ("FFN", "residual") if away.get(name) == 0.0)
    return (
        f"By gradient, attention takes {away.get('attention', 0):.0%} of its influence in layer {depth - 1} from other "
        f"positions; {still} exactly none, because they work on each position by itself."
    )


def few_words(seen: Seen, run: Run) -> str:
    """Why not every number of layers is shown."""
    if len(seen.found.depths) == run.trace.layers:
        return ""
    return f"Beyond {ALL_DEPTHS} positions only {len(seen.found.depths)} numbers of layers are computed, to save time."

"""The grid of needles, its table, and what the page says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvviz.choices.setup import Setup
from kvviz.figures import Drawing
from kvviz.figures.drawing import Table, row_table
from kvviz.figures.needles import loss_by_depth, miss_word, needle_grid
from kvviz.figures.theme import LINES
from kvviz.measures.interval import wilson
from kvviz.ui.quality.needle_run import DEPTHS, VOID_BELOW, Needles
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.words import joined, plural, setup_words

FULL = "full"  # the row of the full cache, where it is neither A nor B nor added


@dataclass(frozen=True, eq=False)
class Row:
    """A row of the grid: a setup and the length of its prompts."""

    letter: str
    setup: Setup
    tokens: int
    needles: Needles

    @property
    def name(self) -> str:
        return f"{self.letter}, {self.tokens:,}"


def grid_figure(rows: Sequence[Row], title: str) -> Drawing:
    """Shares found by depth; of the misses, how many layers and heads held the needle; every needle in the table."""
    found = np.array([row.needles.found.mean(1) for row in rows])
    held = np.array([missed_held(row.needles) for row in rows])
    first = rows[0].needles
    looks = {"tries": first.found.shape[1], "pairs": first.pairs, "title": title}
    names = [row.name for row in rows]
    return drawn(needle_grid, names, DEPTHS, found, held, **looks).with_table(table(rows))


def missed_held(needles: Needles) -> NDArray[np.float64]:
    """Of the needles missed at each depth, the mean share of layers and heads that held them, (D,); NaN if none was."""
    missed = ~needles.found
    total = np.where(missed, needles.held, 0).sum(1)
    return np.divide(total, missed.sum(1), out=np.full(len(total), np.nan), where=missed.any(1))


def table(rows: Sequence[Row]) -> Table:
    """A row a needle: what became of it."""
    lines = []
    for row in rows:
        for (place, seed), is_found in np.ndenumerate(row.needles.found):
            held = float(row.needles.held[place, seed])
            outcome = "found" if is_found else miss_word(held)
            pairs = round(held * row.needles.pairs)
            loss = float(row.needles.loss[place, seed])
            lines.append((str(row.setup), row.tokens, DEPTHS[place], seed, outcome, pairs, row.needles.pairs, loss))
    header = (
        "setup",
        "tokens",
        "depth (%)",
        "seed",
        "outcome",
        "held by",
        "of layers and KV heads",
        "loss (nats a token)",
    )
    return row_table(header, lines)


def loss_figure(rows: Sequence[Row], title: str) -> Drawing:
    """The loss at each depth, of the shortest text that was read."""
    shown = [row for row in rows if row.tokens == rows[0].tokens]
    taken = {row.letter.lower() for row in shown}
    spare = [letter for letter in LINES if letter not in taken]
    series = []
    for row in shown:
        if row.letter != FULL:
            series.append((row.name, row.letter.lower(), row.needles.loss.mean(1)))
        elif spare:  # nine lines would be one too many
            series.append((row.name, spare[0], row.needles.loss.mean(1)))
    return drawn(loss_by_depth, series, DEPTHS, title=title)  # type: ignore[arg-type]


def void_words(full: Row) -> str:
    """Why there is no grid."""
    found = full.needles.found
    return (
        f"This task is void for this model at {full.tokens:,} tokens: with the full cache it finds {int(found.sum())} "
        f"of {found.size} itself, less than {VOID_BELOW:.0%}, so a miss says nothing about a policy. Choose another "
        "task or length."
    )


def needle_words(rows: Sequence[Row]) -> str:
    """How many needles each setup found, with the interval that so few tries leave."""
    parts = []
    for row in rows:
        count, of = int(row.needles.found.sum()), row.needles.found.size
        low, high = wilson(count, of)
        parts.append(f"{row.name}: {count} of {of} ({low:.0%} to {high:.0%})")
    return (
        f"Found, with the 95 % interval of so few tries: {'; '.join(parts)}. *Forgotten*: when the answer began, fewer "
        f"than half of the {rows[0].needles.pairs} layers and KV heads still held all of the needle (*held 12/90*: "
        "held by 12 of 90); *not found*: at least half did."
    )


def legend(named: Sequence[tuple[str, Setup]]) -> str:
    """What the letters of the rows stand for."""
    return f"Rows: {joined([f'{letter} = {setup_words(setup)}' for letter, setup in named])}."


def cost_words(rows: Sequence[Row]) -> str:
    cells = sum(row.needles.found.size for row in rows)
    return f"{plural(cells, 'prompt')}, read in {sum(row.needles.seconds for row in rows):.3g} s."

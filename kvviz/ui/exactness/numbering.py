"""Positions after eviction: as they were, numbered anew by slot, and numbered anew without rotating the keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from kvviz.choices.experiment import TOKENS_LIMIT
from kvviz.figures import Drawing
from kvviz.figures.exactness import angle_map
from kvviz.figures.series import series_lines
from kvviz.ui.exactness.common import Asked, job_for
from kvviz.ui.exactness.settings import MOST_BUDGET, MOST_SINKS
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plain

if TYPE_CHECKING:
    from kvviz.analysis.exactness.masks import Losses
    from kvviz.analysis.exactness.renumbering import Slots

SMOOTH = 16
WAYS = {
    "original": ("original positions", "a"),
    "slot": ("numbered by slot, keys rotated along", "d"),
    "unrotated": ("mistake: numbered by slot, keys not rotated", "b"),
}


@dataclass(frozen=True, eq=False)
class Numbering:
    """The three along the text, and the slots of one step."""

    budget: int
    step: int
    labels: tuple[str, ...]
    losses: dict[str, Losses]
    slots: Slots

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.losses.values()) + self.slots.angles.nbytes + 80 * len(self.labels)

    def late_loss(self, way: str) -> float:
        """Mean over what was predicted after the cache was full, in nats; NaN where it never was."""
        late = self.losses[way][self.budget - 1 :]
        return float(late.mean()) if len(late) else float("nan")


def draw(view: View) -> None:
    """The choice of cache and step, the losses, the distances and the angles."""
    left, middle, right = st.columns(3)
    try:
        budget = whole_number(left, "Budget (entries)", "number_budget", 64, 2, MOST_BUDGET)
        sinks = whole_number(middle, "Sinks among them", "number_sinks", 4, 0, MOST_SINKS)
        looks: dict[str, Any] = {"placeholder": "the last one"}
        step = whole_number(right, "Step (token just read)", "number_step", None, 0, TOKENS_LIMIT, **looks)
    except ValueError as error:
        st.error(str(error))
        return

    def compute(given: Asked, job: Job) -> Numbering:
        return numbering(given, view, (budget, sinks), step, job)

    asked = job_for(view, "numbering", "reads under three numberings", compute, budget, sinks, step, view.layer)
    if found := waiting.extra(*asked, st.empty()):
        show_numbering(found.value, view)


def numbering(given: Asked, view: View, sizes: tuple[int, int], step: int | None, job: Job) -> Numbering:
    """Read the text three times; ValueError for sizes or a step without meaning."""
    from kvviz.analysis.exactness.renumbering import losses_by_numbering, slots_at
    from kvviz.policies.streaming import Streaming

    policy, last = Streaming(*sizes), len(given.ids) - 1
    query = last if step is None else step
    if query > last:
        raise ValueError(f"There is no step {query}: the text has the positions 0–{last}.")
    slots = slots_at(given.model, policy, query, view.layer)
    doing = f"{given.loaded.card.title} reads under three numberings"
    tell = {"progress": lambda share: job.report(doing, share), "is_cancelled": job.is_unwanted}
    losses = losses_by_numbering(given.model, given.ids, policy, **tell)  # type: ignore[arg-type]
    return Numbering(policy.budget, query, given.labels(view.experiment.text.count_from), losses, slots)


def show_numbering(found: Numbering, view: View) -> None:
    st.markdown(plain(numbering_words(found)), help=meaning("positions", "slot"))
    show(loss_figure(found, view.experiment.text.count_from), "loss-by-numbering")
    st.markdown(plain(slot_words(found)))
    columns = st.columns(2)
    with columns[0]:
        show(distance_figure(found), "distances")
    with columns[1]:
        show(angle_figure(found), "angles")


def numbering_words(found: Numbering) -> str:
    """What each numbering costs."""
    if not np.isfinite(found.late_loss("original")):
        return "Nothing leaves a cache as large as the text, so all three are the same; choose a smaller budget."
    costs = {way: found.late_loss(way) for way in WAYS}
    return (
        f"Once {found.budget} entries are held and tokens leave: {costs['original']:.3g} nats a token with original "
        f"positions, {costs['slot']:.3g} numbered by slot with every key rotated to its new position, and "
        f"{costs['unrotated']:.3g} when positions are counted from the entries held and the old keys stay as they "
        "were rotated: every new token then gets the same position."
    )


def slot_words(found: Numbering) -> str:
    """How far the keys are turned at the step."""
    turns, held = found.slots.turns, found.slots.positions
    moved = np.flatnonzero(turns)
    where = f"After token {found.labels[found.step]} the cache holds {len(held)} entries"
    if not len(moved):
        return f"{where}, and no key's slot differs from its position."
    return (
        f"{where}. Slot {moved[0]} holds position {held[moved[0]]}, so its key is turned back by {-turns[moved[0]]} "
        f"positions; {len(moved)} keys are turned, {len(held) - len(moved)} stay. A pair of channels with frequency θ "
        "turns by θ times as many radians."
    )


def loss_figure(found: Numbering, count_from: int) -> Drawing:
    lines = [(words, colour, found.losses[way]) for way, (words, colour) in WAYS.items()]
    looks: dict[str, Any] = {"y_title": "loss (nats)", "x_title": "token (position)", "smooth_over": SMOOTH}
    title = "Loss along the text"
    return drawn(series_lines, lines, **looks, count_from=1 + count_from, title=title)  # type: ignore[arg-type]


def distance_figure(found: Numbering) -> Drawing:
    """How far each slot's key seems to be from the query of the step."""
    lines = [(words, colour, found.slots.distances[way]) for way, (words, colour) in WAYS.items()]
    looks: dict[str, Any] = {"y_title": "distance (positions)", "x_title": "slot", "from_zero": True}
    labels = [found.labels[place] for place in found.slots.positions]
    title = "Distance from the query to each slot's key"
    return drawn(series_lines, lines, **looks, labels=labels, title=title)  # type: ignore[arg-type]


def angle_figure(found: Numbering) -> Drawing:
    labels = [found.labels[place] for place in found.slots.positions]
    return drawn(angle_map, found.slots.angles, labels, title="Rotation of each kept key, numbered by slot")

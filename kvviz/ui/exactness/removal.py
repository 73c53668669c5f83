"""An entry removed, and an entry whose value is set to zero: weights, outputs, losses, and the closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from kvviz.choices.experiment import TOKENS_LIMIT
from kvviz.figures import Drawing
from kvviz.figures.series import series_lines
from kvviz.figures.weights import way_bars
from kvviz.ui.exactness.common import Asked, job_for
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plain, scientific

if TYPE_CHECKING:
    from kvviz.analysis.exactness.masks import Losses
    from kvviz.analysis.exactness.removal import OneStep

SMOOTH, NAMED = 8, 10
WAYS = {"full": ("full", "a"), "removed": ("removed", "b"), "zeroed": ("value set to zero", "c")}


@dataclass(frozen=True, eq=False)
class Removal:
    """One entry removed and zeroed: along the text, and at one step."""

    prefix: int
    labels: tuple[str, ...]
    losses: dict[str, Losses]
    at_step: OneStep

    @property
    def nbytes(self) -> int:
        return self.at_step.nbytes + sum(one.nbytes for one in self.losses.values()) + 80 * len(self.labels)


def draw(view: View) -> None:
    """The choice of entry and step, the losses, the change by layer, and the weights of one head."""
    left, right, _ = st.columns(3)
    try:
        place = whole_number(left, "Entry (position in the prefix)", "remove_at", 0, 0, TOKENS_LIMIT)
        looks: dict[str, Any] = {"placeholder": "the last one"}
        step = whole_number(right, "Step (position of the query)", "remove_step", None, 0, TOKENS_LIMIT, **looks)
    except ValueError as error:
        st.error(str(error))
        return

    def compute(given: Asked, job: Job) -> Removal:
        return removal(given, place, step, view.experiment.text.count_from)

    job = job_for(view, "removal", "reads on without the entry", compute, place, step)
    if found := waiting.extra(*job, st.empty()):
        show_removal(found.value, view)


def removal(given: Asked, place: int, step: int | None, count_from: int) -> Removal:
    from kvviz.analysis.exactness.masks import read_prefix
    from kvviz.analysis.exactness.removal import one_step, removal_losses

    base = read_prefix(given.model, given.ids, given.prefix)
    query = len(given.ids) - 1 if step is None else step
    at_step = one_step(given.model, given.ids, given.prefix, place, query, base)
    losses = removal_losses(given.model, given.ids, given.prefix, place, base)
    return Removal(given.prefix, given.labels(count_from), losses, at_step)


def show_removal(found: Removal, view: View) -> None:
    st.markdown(plain(loss_words(found)))
    columns = st.columns(2)
    with columns[0]:
        show(loss_figure(found, view.experiment.text.count_from), "loss-by-removal")
    with columns[1]:
        show(change_figure(found), "change-by-layer")
    layers, heads = found.at_step.share.shape
    layer, head = min(view.layer, layers - 1), min(view.head, heads - 1)
    st.markdown(plain(step_words(found, layer, head)))
    show(weights_figure(found, layer, head), "weights-by-removal")


def loss_words(found: Removal) -> str:
    """What removing and zeroing cost, and the closed form beside what was measured."""
    full, removed, zeroed = (float(found.losses[way].mean()) for way in WAYS)
    gone = found.labels[found.at_step.place]
    return (
        f"After the prefix, ‘{gone}’ leaves the cache in all layers and heads: {removed:.3g} nats a token instead of "
        f"{full:.3g}, for its weight is shared out among the rest. With only its value set to zero the weight goes "
        f"nowhere: {zeroed:.3g} nats."
    )


def step_words(found: Removal, layer: int, head: int) -> str:
    """One head at one step, and how good the closed form is over all of them."""
    step, share = found.at_step, float(found.at_step.share[layer, head])
    removed, zeroed = (float(step.change(way)[layer, head]) for way in ("removed", "zeroed"))
    return (
        f"At token {found.labels[step.step]}, layer {layer}, head {head}: the entry has weight p = {share:.3g}. "
        f"Removed, the output moves by {removed:.3g} of its length; zeroed, by {zeroed:.3g}. The closed form of one "
        f"removal, p/(1 − p)·(o − v), meets the measured change in all {step.share.size} heads to "
        f"{scientific(step.formula_gap)} of the largest one."
    )


def loss_figure(found: Removal, count_from: int) -> Drawing:
    lines = [(words, colour, found.losses[way]) for way, (words, colour) in WAYS.items()]
    looks: dict[str, Any] = {"y_title": "loss (nats)", "x_title": "token (position)", "smooth_over": SMOOTH}
    first = found.prefix + 1 + count_from
    return drawn(series_lines, lines, **looks, count_from=first, title="Loss after the prefix")  # type: ignore[arg-type]


def change_figure(found: Removal) -> Drawing:
    """How far each layer's output moves at the step, mean over its heads."""
    lines = [(words, colour, found.at_step.change(way).mean(1)) for way, (words, colour) in list(WAYS.items())[1:]]
    looks: dict[str, Any] = {"y_title": "change (share of the output)", "x_title": "layer", "from_zero": True}
    title = "Change of the attention output at the step"
    return drawn(series_lines, lines, **looks, title=title)  # type: ignore[arg-type]


def weights_figure(found: Removal, layer: int, head: int) -> Drawing:
    """The entry and the keys that got most, by way, in the order of the text."""
    step = found.at_step
    weights = {words: step.weights[way][layer, head] for way, (words, _) in WAYS.items()}
    others = [int(key) for key in np.argsort(-weights["full"], kind="stable") if key != step.place][: NAMED - 1]
    keys = sorted([step.place, *others])
    picked = {words: row[keys] for words, row in weights.items()}
    title = f"Weights of one query, layer {layer}, head {head}"
    colours = [colour for _, colour in WAYS.values()]
    return drawn(way_bars, [found.labels[key] for key in keys], picked, colours, title=title)  # type: ignore[arg-type]

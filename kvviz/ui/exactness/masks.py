"""The mask of a block of rows over a cache: right, and with its triangle in the corner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from kvviz.figures import Drawing
from kvviz.figures.exactness import mask_map
from kvviz.figures.series import series_lines
from kvviz.ui.exactness.common import Asked, job_for
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import scientific

if TYPE_CHECKING:
    from kvviz.analysis.exactness.masks import Masked

SMOOTH = 8  # tokens
RIGHT, CORNER = "right: row i sees keys up to S + i", "mistake: the triangle begins in the corner"


@dataclass(frozen=True, eq=False)
class Masks:
    """The block under both masks."""

    prefix: int
    right: Masked
    corner: Masked

    @property
    def nbytes(self) -> int:
        return self.right.nbytes + self.corner.nbytes


def draw(view: View) -> None:
    """Both masks and what the text costs under them."""

    def compute(given: Asked, job: Job) -> Masks:
        from kvviz.analysis.exactness.masks import masked

        return Masks(given.prefix, *masked(given.model, given.ids, given.prefix, given.uncached()))

    if found := waiting.extra(*job_for(view, "mask", "reads the block under both masks", compute), st.empty()):
        both: Masks = found.value
        st.markdown(mask_words(both))
        for column, is_right in zip(st.columns(2), (True, False), strict=True):
            with column:
                show(mask_figure(both, is_right), "right-mask" if is_right else "corner-mask")
        show(loss_figure(both, view.experiment.text.count_from), "loss-by-mask")


def mask_words(both: Masks) -> str:
    """What each mask costs."""
    rows, cached = len(both.right.compared.gaps), both.prefix
    right, corner = float(both.right.losses.mean()), float(both.corner.losses.mean())
    return (
        f"A block of {rows} rows meets S = {cached} cached keys. Row i may see the keys 0 to S + i: then the answers "
        f"are the uncached ones (gap {scientific(both.right.compared.gap)} nats, loss {right:.3g}). With the mistake "
        f"of a triangle in the corner of {rows} × {cached + rows}, row i sees the keys 0 to i and most of the cache is "
        f"hidden: gap {both.corner.compared.gap:.3g} nats, loss {corner:.3g}."
    )


def mask_figure(both: Masks, is_right: bool) -> Drawing:
    """One of the masks as it was used."""
    rows, cached = len(both.right.compared.gaps), both.prefix
    right = np.tri(rows, cached + rows, cached, dtype=bool)
    shown = right if is_right else np.tri(rows, cached + rows, dtype=bool)
    return drawn(mask_map, shown, right, cached, title="Right" if is_right else "The mistake")


def loss_figure(both: Masks, count_from: int) -> Drawing:
    """What the tokens of the block cost under each."""
    lines = [(RIGHT, "a", both.right.losses), (CORNER, "b", both.corner.losses)]
    first = both.right.compared.first + 1 + count_from
    looks = {"y_title": "loss (nats)", "x_title": "token (position)", "smooth_over": SMOOTH, "count_from": first}
    return drawn(series_lines, lines, **looks, title="Loss under both masks")  # type: ignore[arg-type]

"""One group of numbers that share a scale: the numbers, their codes, scale, minimum, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from kvviz.figures import Drawing
from kvviz.figures.channels import coded_group
from kvviz.ui.precision.channels import outliers, place
from kvviz.ui.precision.errors import Measured, given, storages
from kvviz.ui.precision.settings import MOST_BLOCK, MOST_CHANNEL, PrecisionSettings
from kvviz.ui.quality.scored import text_key
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plain

if TYPE_CHECKING:
    from kvviz.analysis.precision.groups import Group

NAMED = 6  # numbers that are written out


@dataclass(frozen=True)
class Asked:
    """Which group: the storage's name, what shares a scale, the block of keys and the channel."""

    bits: str
    grouping: str
    layer: int
    head: int
    block: int
    channel: int


def draw(view: View, found: Measured) -> None:
    """The choice of block and channel, and the group."""
    layer, head = place(view, found)
    large = outliers(found, layer, head)
    usual = large[0] if large else 0
    left, right, _ = st.columns(3)
    try:
        block = whole_number(left, "Block of keys (from 0)", "bits_block", 1, 0, MOST_BLOCK)
        looks: dict[str, Any] = {"placeholder": f"{usual}, the largest"}
        channel = whole_number(right, "Channel", "bits_channel", None, 0, MOST_CHANNEL, **looks)
    except ValueError as error:
        st.error(str(error))
        return
    chosen = view.of(PrecisionSettings)
    asked = Asked(chosen.bits, chosen.grouping, layer, head, block, usual if channel is None else channel)
    if result := waiting.extra(*group_job(view, asked), st.empty()):
        st.markdown(plain(group_words(result.value, asked)))
        show(figure(result.value, asked), "one-group")


def group_job(view: View, asked: Asked) -> tuple[Key, Callable[[Job], Result]]:
    """The keys of one head, and of them the group."""
    chosen = view.of(PrecisionSettings)

    def compute(job: Job) -> Result:
        from kvviz.analysis.precision.groups import group_of, keys_of

        loaded, ids = given(view, job)
        storage = next(one for one in storages(view) if one.name() == asked.bits)
        keys = keys_of(loaded.model, ids, asked.layer, asked.head)
        found = group_of(keys, storage, asked.grouping, asked.block, asked.channel)
        return Result(found, found.nbytes)

    return ("group", *text_key(view.experiment), chosen.group, chosen.residual, *vars(asked).values()), compute


def group_words(group: Group, asked: Asked) -> str:
    """The group as a calculation."""
    what = (
        f"channel {asked.channel} of the keys at positions {group.names[0]}–{group.names[-1]}"
        if asked.grouping == "channel"
        else f"channels {group.names[0]}–{group.names[-1]} of one key, the first of block {asked.block}"
    )
    numbers, most = group.numbers, 2 ** int(asked.bits[3:]) - 1
    shown = ", ".join(f"{number:.3g} → {code} → {back:.3g}" for number, code, back in first_of(group))
    worst = float(np.abs(group.restored - numbers).max())
    return (
        f"Layer {asked.layer}, KV head {asked.head}, {what}: {len(numbers)} numbers from {numbers.min():.3g} to "
        f"{numbers.max():.3g}. Minimum {group.low:.4g}; scale ({numbers.max():.3g} − {group.low:.3g}) / {most} = "
        f"{group.scale:.4g}. Code = round((number − minimum) / scale), and minimum + code · scale comes back: {shown}, "
        f"… The largest error is {worst:.3g}, at most half a scale."
    )


def first_of(group: Group) -> list[tuple[float, int, float]]:
    return list(zip(group.numbers[:NAMED], group.codes[:NAMED].tolist(), group.restored[:NAMED], strict=True))


def figure(group: Group, asked: Asked) -> Drawing:
    levels = group.low + group.scale * np.arange(2 ** int(asked.bits[3:]))
    of = "position of the key" if asked.grouping == "channel" else "channel"
    title = f"One group under {asked.bits}"
    return drawn(coded_group, group.numbers, group.codes.tolist(), group.restored, levels, group.names, of, title=title)

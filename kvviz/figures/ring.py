"""The rolling buffer as a ring: position i lies in slot i mod budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvviz.figures import theme
from kvviz.figures.drawing import Drawing, Table
from kvviz.figures.frame import lay_out, short
from kvviz.text.counting import plural
from kvviz.text.signs import escape

HEIGHT = 380
FAINT = "#808080"  # the word "empty", on any page
NAMED_SLOTS = 64  # with more slots only some can carry text


def ring(
    positions: NDArray[np.integer] | Iterable[int],
    budget: int,
    labels: Sequence[str],
    newest: int,
    *,
    side: theme.Side = "a",
    count_from: int = 0,
    title: str = "",
) -> Drawing:
    """The ``budget`` slots clockwise from the top, each with its token; the newest is in the accent of ``side``.

    ``positions`` (K,) are the positions held, counted from 0 as in the arrays; ``labels`` the labels of all positions,
    numbered from ``count_from`` as the slots are computed: slot = (position + count_from) mod budget.
    """
    if budget < 1:
        raise ValueError(f"A ring needs at least 1 slot, not {budget}.")
    held = {(int(position) + count_from) % budget: int(position) for position in positions}
    every = -(-budget // NAMED_SLOTS)
    named = [slot for slot in range(budget) if slot % every == 0 or held.get(slot) == newest]
    colours = slot_colours(budget, held, newest, side)
    fig = go.Figure(
        go.Pie(
            values=np.ones(budget, dtype=np.uint8),
            labels=np.arange(budget),
            text=[slot_text(slot, held, labels, budget) if slot in named else "" for slot in range(budget)],
            hovertext=[slot_story(slot, held, labels) for slot in range(budget)],
            marker={"colors": colours, "line": edges(budget)},
            insidetextfont={"color": [theme.text_on(colour) if colour[0] == "#" else FAINT for colour in colours]},
            **shape_of_ring(budget),
        )
    )
    newest_slot = (newest + count_from) % budget
    fig.add_annotation(text=centre_text(held, budget, labels, newest, newest_slot), showarrow=False, font_size=13)
    alt = (
        f"Ring buffer of {plural(budget, 'slot')}, {len(held)} filled; the newest token, {labels[newest]!r}, is in "
        f"slot {newest_slot}."
    )
    lay_out(fig, kind=f"ring {budget}", alt=alt, height=HEIGHT, title=title)
    fig.update_layout(showlegend=False, uniformtext={"minsize": 9, "mode": "hide"})
    tokens = [labels[held[slot]] if slot in held else "" for slot in range(budget)]
    return Drawing(fig, Table(("slot", "token"), (range(budget), tokens)), alt)


def shape_of_ring(budget: int) -> dict[str, Any]:
    """Pie settings that keep the slots in order; many slots need a thin ring with radial text."""
    return {
        "sort": False,
        "direction": "clockwise",
        "hole": 0.5 if budget <= 16 else 0.6,
        "textinfo": "text",
        "textposition": "inside",
        "insidetextorientation": "horizontal" if budget <= 16 else "radial",
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def edges(budget: int) -> dict[str, Any]:
    return {"color": theme.RULE, "width": 1 if budget <= 128 else 0}


def slot_colours(budget: int, held: dict[int, int], newest: int, side: theme.Side) -> list[str]:
    """The accent for the newest, a pale accent for what is held, almost nothing for an empty slot."""
    accent = theme.ACCENT[side]
    pale = theme.paler(accent)
    return [theme.GROUND if slot not in held else accent if held[slot] == newest else pale for slot in range(budget)]


def slot_text(slot: int, held: dict[int, int], labels: Sequence[str], budget: int) -> str:
    """What is written in a slot; its number too while there is room."""
    token = short(labels[held[slot]]) if slot in held else "empty"
    return f"{token}<br>slot {slot}" if budget <= 16 else token if slot in held else ""


def slot_story(slot: int, held: dict[int, int], labels: Sequence[str]) -> str:
    return f"slot {slot}: {escape(labels[held[slot]]) if slot in held else 'empty'}"


def centre_text(held: dict[int, int], budget: int, labels: Sequence[str], newest: int, slot: int) -> str:
    """The rule with the numbers of the newest token, and what goes next."""
    lines = [f"<b>{short(labels[newest])}</b>", f"went to slot {slot}"]
    following = held.get((slot + 1) % budget)
    if following is not None:
        lines += ["next to be", "overwritten:", short(labels[following])]
    return "<br>".join(lines)

"""The gallery of patterns: what each query may see, what that costs, and how far it carries through layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.choices.patterns import Causal, Dilated, Global, Layered, Pattern, Sliding
from kvviz.figures.attention import visibility
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn

TOKENS, LAYERS = 24, 4
LABELS = [str(position) for position in range(TOKENS)]
EXAMPLES: tuple[tuple[str, Pattern, str], ...] = (
    ("Full", Causal(), "every query attends to all positions before it: n(n + 1)/2 pairs."),
    ("Sliding window", Sliding(window=6), "about n·w pairs; each further layer reaches w − 1 positions further back."),
    ("Dilated", Dilated(window=6, dilation=(2,)), "no more than n·w pairs over twice the distance, with gaps."),
    ("Global + sliding", Global(window=6, tokens=(0,)), "every query sees token 0: one hop to the start."),
    ("Layered", Layered(windows=(6, 6, 6, 0)), "windows of 6 in three layers, then a full one; layer 0 is drawn."),
)


@dataclass(frozen=True)
class Example:
    """One pattern on a short text, drawn for layer 0."""

    title: str
    pattern: Pattern
    remark: str
    mask: NDArray[np.bool_]  # (T, T)
    pairs: int  # of query and key, in layer 0
    reach: int  # positions the last token can depend on after LAYERS layers


def draw() -> None:
    """The patterns beside each other, a part of the Attention page."""
    for row in (examples()[:3], examples()[3:]):
        for column, one in zip(st.columns(3), row, strict=False):
            with column:
                show(drawn(visibility, one.mask, LABELS, title=one.title, is_small=True), f"gallery-{one.title}")
                st.caption(cost_words(one))
    st.caption("Choose a pattern for A or B under More choices in the sidebar; policies evict in addition to it.")


@cache
def examples() -> list[Example]:
    """All of them; they never change."""
    return [example(*one) for one in EXAMPLES]


def example(title: str, pattern: Pattern, remark: str) -> Example:
    from kvviz.measures.reach import reach

    mask, known = mask_of(pattern, 0), reach(pattern, LAYERS, TOKENS)[-1]
    return Example(title, pattern, remark, mask, int(mask.sum()), int(known.sum()))


def mask_of(pattern: Pattern, layer: int) -> NDArray[np.bool_]:
    """What each of a few queries sees in one layer, (T, T) bool; for dilations by head, that of head 0."""
    import torch  # takes seconds: the settings are there before

    places = torch.arange(TOKENS)
    seen = pattern.sees(places[:, None], places[None, None], layer, torch.zeros(1, 1, 1, dtype=torch.long))
    mask: NDArray[np.bool_] = (seen.reshape(-1, TOKENS, TOKENS)[0] & (places <= places[:, None])).numpy()
    return mask


def cost_words(one: Example) -> str:
    """Pairs against the full triangle, and the reach."""
    full = TOKENS * (TOKENS + 1) // 2
    window = getattr(one.pattern, "window", 0)
    product = f", n·w = {TOKENS * window}" if window and not isinstance(one.pattern, Layered) else ""
    return (
        f"{one.pairs} of {full} pairs{product}. After {LAYERS} layers the last token can depend on {one.reach} of "
        f"{TOKENS} positions. {one.remark[:1].upper()}{one.remark[1:]}"
    )

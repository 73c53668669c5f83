"""The text, every token shaded by the weight it gets; a click on a token makes it the query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.figures.scales import Scale
from kvviz.ui.components.assets import SHADES, component, shades

_strip = component("token_strip", "token_strip.js", "token_strip.css")


def token_strip(
    tokens: Sequence[str],
    weights: NDArray[np.floating],
    *,
    query: int | None,
    key: str,
    scale: Literal["log", "linear"] = "log",
    top: float = 1.0,
    count_from: int = 0,
    side: Literal["a", "b"] = "a",
    on_pick: Callable[[int], None] | None = None,
) -> int | None:
    """Draw the text with ``weights`` (T,), shares of 1, NaN = not in the cache, and return the chosen query.

    The choice lives in ``st.session_state[key]``: it begins with ``query``, a click changes it before the script runs
    again, so read it there to compute the weights. ``on_pick`` is called after a click. The colours are those of
    ``figures.attention_map`` with the same ``scale`` and ``top``; ``tokens`` are the T visible texts, not escaped.
    """
    count = len(tokens)
    if weights.shape != (count,):
        raise ValueError(f"Weights of shape {weights.shape} do not fit {count} tokens; give one for each token.")
    chosen = within(st.session_state.get(key, query), count, query)
    st.session_state[key] = chosen
    place = f"{key}.strip"

    def pick() -> None:
        token = within(st.session_state[place].get("pick"), count, chosen)
        st.session_state[key] = token
        if on_pick is not None and token is not None:
            on_pick(token)

    shading = Scale(scale, top)
    data: dict[str, Any] = {
        "tokens": list(tokens),
        # a float32 in the fewest digits that bring it back, so that strip and map show the same number
        "weights": [None if weight != weight else float(str(np.float32(weight))) for weight in weights],
        "levels": [None if weight != weight else level(shading, float(weight)) for weight in weights],
        "query": chosen,
        "countFrom": count_from,
        "ticks": shading.tick_texts(),
        "shades": shades(),
        "side": side,
    }
    _strip(key=place, data=data, on_pick_change=pick)
    return chosen


def level(shading: Scale, weight: float) -> int:
    """Which of the shades a weight has."""
    return round(shading.place(weight) * (SHADES - 1))


def within(token: object, count: int, otherwise: int | None) -> int | None:
    """The token moved into the text; what is not a whole number becomes ``otherwise``."""
    return min(max(token, 0), count - 1) if type(token) is int else otherwise

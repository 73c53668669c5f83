"""One measure for every layer and head; a click or Enter on a cell chooses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.ui.components.assets import component, shades

Cell = tuple[int, int]
_picker = component("layer_head_picker", "layer_head_picker.js", "layer_head_picker.css")


def layer_head_picker(
    values: NDArray[np.floating],
    selected: Cell,
    *,
    name: str,
    key: str,
    kv_heads: int | None = None,
    on_pick: Callable[[int, int], None] | None = None,
) -> Cell:
    """Draw ``values`` (L, A), shares from 0 to 1, as a grid of buttons and return the chosen (layer, head).

    The choice lives in ``st.session_state[key]`` as (layer, head): it begins with ``selected``, a click changes it
    before the script runs again, and the page may set it too. ``on_pick`` is called after a click. ``kv_heads`` draws
    a bracket over the query heads that share a KV head. NaN is shown as no value.
    """
    layers, heads = values.shape
    if kv_heads is not None and (kv_heads < 1 or heads % kv_heads):
        raise ValueError(f"{heads} query heads cannot share {kv_heads} KV heads evenly.")
    chosen = inside(st.session_state.get(key, selected), layers, heads)
    st.session_state[key] = chosen
    place = f"{key}.picker"

    def pick() -> None:
        cell = inside(st.session_state[place].get("pick"), layers, heads, chosen)
        st.session_state[key] = cell
        if on_pick is not None:
            on_pick(*cell)

    data: dict[str, Any] = {
        "values": [[None if value != value else round(float(value), 4) for value in row] for row in values],
        "selected": list(chosen),
        "name": name,
        "kvHeads": kv_heads,
        "shades": shades(),
    }
    _picker(key=place, data=data, on_pick_change=pick)
    return chosen


def inside(cell: object, layers: int, heads: int, otherwise: Cell = (0, 0)) -> Cell:
    """The cell moved into the grid; what is not a pair of whole numbers becomes ``otherwise``.

    The pair may come from a browser, or be left from a model with more layers.
    """
    if not isinstance(cell, (list, tuple)) or len(cell) != 2 or not all(type(part) is int for part in cell):
        return otherwise
    return min(max(cell[0], 0), layers - 1), min(max(cell[1], 0), heads - 1)

"""The model that runs: its card, and the number format it computes in."""

from __future__ import annotations

import streamlit as st

from kvviz.models import MODELS
from kvviz.ui.shell import runs
from kvviz.ui.shell.state import View


def dtype_here(model: str) -> str | None:
    """The number format of the model's runs, known once it is loaded; it travels in the link, to be compared."""
    loaded = runs.model_if_loaded(model)
    return str(loaded.dtype).removeprefix("torch.") if loaded else None


def model_title(view: View) -> str:
    """What the model is called, once it is loaded."""
    loaded = runs.model_if_loaded(view.experiment.model)
    return loaded.card.title if loaded else view.experiment.model


def model_card(name: str) -> None:
    """What model this is, what it was made from, and under which licence."""
    loaded = runs.model_if_loaded(name)
    card = loaded.card if loaded else MODELS.get(name)
    if card is None:
        return
    where = f" · {dtype_here(name)} on {loaded.device}" if loaded else ""
    st.caption(
        f"**{card.title}** · {card.parameters / 1e6:.0f} M parameters{where}  \n{card.weights_note}  \n"
        f"{card.attribution} · [{card.licence}]({card.licence_url})"
    )

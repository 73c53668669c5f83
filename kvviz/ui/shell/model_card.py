"""The model that runs: its card, and the number format it computes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from kvviz.models import MODELS
from kvviz.ui.shell import runs
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import joined

if TYPE_CHECKING:
    from kvviz.analysis.trial import Trial

TRIED_TOKENS = 9  # as many as ``analysis.trial`` reads, which imports what takes seconds


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
    if trial := runs.trial_if_made(name):
        st.caption(trial_words(trial), help=meaning("try of the model"))


def trial_words(trial: Trial) -> str:
    """What the try of the model found, in one or two sentences."""
    gaps = (trial.full_gap, trial.stepped_gap, trial.window_gap)
    largest = max(gap for gap in gaps if gap is not None)
    found = (
        f"Tried on {TRIED_TOKENS} tokens against the stock model: log-probabilities differ by at most {largest:.1e} "
        f"nats ({trial.allowed_gap:.0e} allowed)."
    )
    answers = {**trial.policies, **trial.storages, "slot positions": trial.slot}
    unfit = [name for name, answer in answers.items() if answer is not True]
    return found + (f" Not on this model: {joined(unfit)}." if unfit else " All policies, storages and positions work.")

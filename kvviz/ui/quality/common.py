"""What the parts of the Quality page share: the text that is scored, and losses after the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kvviz.choices.setup import Setup
from kvviz.ui.shell import runs
from kvviz.ui.shell.jobs import Job

if TYPE_CHECKING:
    from kvviz.models import Loaded
    from kvviz.run.trace import Trace

MANY_TOKENS = 10**9  # no limit: the whole text


@lru_cache(maxsize=8)
def first_tokens(model: str, content: str, count: int) -> tuple[int, ...]:
    """The first tokens of a text; a long one takes half a second, so they are remembered."""
    from kvviz.models.tokens import encode

    return tuple(encode(runs.loaded_model(model).tokenizer, content, count))


def model_for(model: str, setups: list[Setup], job: Job) -> Loaded:
    """The loaded model; ValueError with the reason where it cannot run one of the setups."""
    loaded = runs.loaded_model(model, job.tell)
    for setup in setups:
        if reason := runs.refusal(loaded, setup):
            raise ValueError(reason)
    return loaded


def late_loss(trace: Trace) -> float:
    """Mean loss of the tokens after the prompt, in nats."""
    return mean_after(trace.nll, trace.prompt_tokens)


def mean_after(losses: NDArray[np.floating], prompt_tokens: int) -> float:
    """Mean of the losses (T − 1,) that belong to tokens after the prompt, in nats; NaN where there is none."""
    late = losses[prompt_tokens - 1 :]
    return float(np.nanmean(late)) if np.isfinite(late).any() else float("nan")


def means_after(losses: Sequence[NDArray[np.floating]], first: int) -> list[float]:
    """Means of several readings of one text, (T − 1,) each, over the losses from index ``first`` on that all of them
    have: of a long text re-computation has only a sample, and other tokens are harder or easier."""
    late = [one[first:] for one in losses]
    computed = np.isfinite(late).all(0)
    return [float(one[computed].mean()) if computed.any() else float("nan") for one in late]


def has_losses(trace: Trace) -> bool:
    """Whether any token comes after the prompt and was computed."""
    return bool(np.isfinite(trace.nll[trace.prompt_tokens - 1 :]).any())

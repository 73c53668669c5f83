"""The text on the left as the parts of the page score it: its tokens, and where the prompt ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.choices.experiment import Experiment
from kvviz.choices.setup import Setup
from kvviz.ui.quality.common import first_tokens, late_loss, model_for
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.runs import TOKENS_ON_A_PAGE, Key

if TYPE_CHECKING:
    from kvviz.run.trace import Trace

NOTHING = "No token comes after the prompt, so there is nothing to score: end the prompt earlier."


@dataclass(frozen=True)
class Measured:
    """What a setup lost and held on a text."""

    loss: float  # nats a token after the prompt
    cache_bytes: int  # at the end
    seconds: float  # of the whole pass


def text_key(experiment: Experiment) -> Key:
    """What the tokens and the end of the prompt depend on; the model comes first."""
    return (experiment.model, experiment.text.sha256, experiment.tokens, experiment.prompt_tokens)


def scored_text(experiment: Experiment) -> tuple[tuple[int, ...], int]:
    """The tokens and where the prompt ends; ValueError where nothing comes after it."""
    ids = first_tokens(experiment.model, experiment.text.content, min(experiment.tokens, TOKENS_ON_A_PAGE))
    prompt = min(experiment.prompt_tokens or max(1, len(ids) // 2), len(ids))
    if prompt >= len(ids):
        raise ValueError(NOTHING)
    return ids, prompt


def read_under(experiment: Experiment, setup: Setup, job: Job, tell: Callable[[float], None], **more: object) -> Trace:
    """The text read under a setup; ``tell`` is told the share done."""
    from kvviz.run.replay import replay

    loaded = model_for(experiment.model, [setup], job)
    ids, prompt = scored_text(experiment)
    options = {"prompt_tokens": prompt, "progress": tell, "is_cancelled": job.is_unwanted, **more}
    return replay(loaded.model, ids, setup, **options)  # type: ignore[arg-type]


def measured(trace: Trace) -> Measured:
    return Measured(late_loss(trace), trace.cache_bytes, trace.seconds)

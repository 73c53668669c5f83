"""What the parts of the Exactness page share: the text, where its prefix ends, and the stock model's answers to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvviz.choices.experiment import Experiment
from kvviz.choices.setup import Setup
from kvviz.text.signs import unique_labels
from kvviz.ui.quality.common import first_tokens, model_for
from kvviz.ui.quality.scored import text_key
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.runs import TOKENS_ON_A_PAGE, Key
from kvviz.ui.shell.state import View

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from kvviz.models import Loaded

MOST_ROWS = 256  # tokens after the prefix that are compared: each has an answer as wide as the vocabulary
_uncached: dict[Key, Any] = {}  # the stock model's answers to the text at hand, for every condition in turn


@dataclass(frozen=True, eq=False)
class Asked:
    """A loaded model, the tokens that are read, and how many of them the cache is made of."""

    loaded: Loaded
    ids: Tensor
    prefix: int
    key: Key

    @property
    def model(self) -> PreTrainedModel:
        return self.loaded.model

    def labels(self, count_from: int) -> tuple[str, ...]:
        """The tokens, numbered."""
        from kvviz.models.tokens import labels

        return tuple(unique_labels(labels(self.loaded.tokenizer, self.ids.tolist()), count_from))

    def uncached(self) -> Tensor:
        """The stock model's answers after the prefix; the last ones asked for are kept, since they take a forward."""
        from kvviz.analysis.exactness.compared import uncached_logits

        if self.key not in _uncached:
            found = uncached_logits(self.model, self.ids, self.prefix)
            _uncached.clear()
            _uncached[self.key] = found
        kept: Tensor = _uncached[self.key]
        return kept


def asked(experiment: Experiment, job: Job) -> Asked:
    """What the page reads; ValueError in one sentence where the text or the prefix is too short."""
    loaded = model_for(experiment.model, [Setup()], job)
    import torch

    from kvviz.analysis.exactness.compared import check_prefix

    ids = first_tokens(experiment.model, experiment.text.content, min(experiment.tokens, TOKENS_ON_A_PAGE))
    prefix = experiment.prompt_tokens or len(ids) // 2
    check_prefix(prefix, len(ids))
    given = torch.tensor(ids[: prefix + MOST_ROWS], device=loaded.model.device)
    return Asked(loaded, given, prefix, text_key(experiment))


def job_for(
    view: View, name: str, doing: str, compute: Callable[[Asked, Job], Any], *more: object
) -> tuple[Key, Callable[[Job], Result]]:
    """A computation on the page's text: its key and how to compute it. What it finds must have ``nbytes``."""
    experiment = view.experiment

    def run(job: Job) -> Result:
        given = asked(experiment, job)
        job.report(f"{given.loaded.card.title} {doing}", 0.1)
        found = compute(given, job)
        return Result(found, found.nbytes)

    return (name, *text_key(experiment), *more), run

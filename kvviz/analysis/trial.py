"""One try of a model on a few tokens: does kvviz compute what the stock model computes, and what works on it?

An architecture that nobody thought of may hide keys by a rule of its own, count positions in another way, or carry a
state from token to token. Its pictures would look real; so it is asked before any is drawn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.against_stock import PROMPT, compared, disagreement
from kvviz.choices.setup import Setup
from kvviz.choices.storage import STORAGES, Storage
from kvviz.knobs import Choice
from kvviz.models import Loaded, tokens
from kvviz.models.stock import in_float32
from kvviz.policies import POLICIES, Policy
from kvviz.run.replay import replay
from kvviz.run.rotation import ropes_of

TOKENS = 9
# knobs so small that of so few tokens something leaves, and something is quantised
SMALL = {"budget": 5, "sinks": 2, "recent": 2, "observe": 2, "kernel": 3, "group": 2, "residual": 2, "resident": 2}
Answer: TypeAlias = "bool | str"  # True, or why not


@dataclass(frozen=True)
class Trial:
    """What came out: gaps are the largest difference in log-probability from the stock model, in nats.

    ``slot``, and each of ``storages`` and ``policies`` by name: True, or in one sentence why not.
    """

    model_type: str
    full_gap: float | None = None  # the full cache in one block
    stepped_gap: float | None = None  # the full cache, one token at a time
    window_gap: float | None = None  # a window, against the stock model under the same mask
    allowed_gap: float | None = None  # the largest gap that counts as the same sums in another order
    slot: Answer = "It was not tried."
    storages: Mapping[str, Answer] = field(default_factory=dict)
    policies: Mapping[str, Answer] = field(default_factory=dict)
    reason: str = ""  # why no run of this model may be shown; empty if all is well

    @property
    def is_ok(self) -> bool:
        return not self.reason

    def refusal(self, setup: Setup) -> str:
        """Why this setup may not be shown on the model; empty if it may."""
        answers = [self.policies.get(setup.policy.name(), True), self.storages.get(setup.storage.name(), True)]
        if setup.positions == "slot":
            answers.append(self.slot)
        return self.reason or next((answer for answer in answers if isinstance(answer, str)), "")


def try_model(model: PreTrainedModel, ids: Tensor | None = None) -> Trial:
    """Try the model on tokens (T,), by default some spread over its vocabulary; nothing is raised, all is answered."""
    trial = Trial(model_type=model.config.model_type)
    gaps: dict[str, Any] = {}
    ids = some_ids(model) if ids is None else ids.to(model.device)
    try:
        with in_float32(model):
            for name, gap, allowed in compared(model, ids):
                gaps |= {name: gap, "allowed_gap": allowed}
                if not gap <= allowed:
                    return replace(trial, **gaps, reason=disagreement(trial.model_type, name, gap, allowed))
            return replace(trial, **gaps, **what_works(model, ids))
    except Exception as error:  # a foreign architecture can fail in any way; the reader needs one sentence
        return replace(trial, **gaps, reason=sentence_of(error, trial.model_type))


SENTENCE = "The cat sat on the warm mat because it liked the morning sun."
_trials: WeakKeyDictionary[PreTrainedModel, Trial] = WeakKeyDictionary()


def trial_of(loaded: Loaded) -> Trial:
    """The try of a loaded model on a plain sentence, made once."""
    if loaded.model not in _trials:
        ids = tokens.encode(loaded.tokenizer, SENTENCE, TOKENS)
        _trials[loaded.model] = try_model(loaded.model, torch.tensor(ids) if len(ids) == TOKENS else None)
    return _trials[loaded.model]


def some_ids(model: PreTrainedModel) -> Tensor:
    vocabulary = model.config.get_text_config(decoder=True).vocab_size
    return torch.linspace(0.15, 0.85, TOKENS, device=model.device).mul(vocabulary).long()


def what_works(model: PreTrainedModel, ids: Tensor) -> dict[str, Any]:
    """Whether slot positions work, and which of the kinds of storage and policies."""
    return {
        "slot": answered(model, lambda: ropes_of(model)),
        "storages": once_each(STORAGES, held_like, lambda kind: read(model, ids, Setup(storage=small(kind))), model),
        "policies": once_each(POLICIES, asked_like, lambda kind: read(model, ids, Setup(small(kind))), model),
    }


def asked_like(kind: type[Policy]) -> Hashable:
    """What a policy asks of a model; those that ask the same work, or do not, together."""
    return kind.needs, kind.differs, kind.recomputes


def held_like(kind: type[Storage]) -> Hashable:
    """How entries are held: codes of 8, 4 or 2 bits differ in nothing that a model could know."""
    return kind.is_exact, kind.needs_heads


Kind = TypeVar("Kind", bound=type[Choice])


def once_each(
    kinds: Mapping[str, Kind],
    likeness: Callable[[Kind], Hashable],
    attempt: Callable[[Kind], None],
    model: PreTrainedModel,
) -> dict[str, Answer]:
    """Whether each kind works; of those that are alike one is tried."""
    answers: dict[Hashable, Answer] = {}
    for kind in kinds.values():
        if likeness(kind) not in answers:
            answers[likeness(kind)] = answered(model, partial(attempt, kind))
    return {name: answers[likeness(kind)] for name, kind in kinds.items()}


def read(model: PreTrainedModel, ids: Tensor, setup: Setup) -> None:
    """Read the tokens under the setup; ValueError where the bytes are not those that the lifetimes tell."""
    trace = replay(model, ids.tolist(), setup, prompt_tokens=PROMPT, block=PROMPT)
    if trace.bytes_at()[-1] != trace.cache_bytes:
        raise ValueError(f"the cache holds {trace.cache_bytes} bytes where {trace.bytes_at()[-1]} were counted")


def small(kind: type[Choice]) -> Any:
    return kind(**{knob.name: SMALL[knob.name] for knob in fields(kind) if knob.name in SMALL})


def answered(model: PreTrainedModel, attempt: Callable[[], object]) -> Answer:
    try:
        attempt()
    except Exception as error:  # as in ``try_model``
        return sentence_of(error, model.config.model_type)
    return True


def sentence_of(error: Exception, model_type: str) -> str:
    """A refusal as it was said; what nobody expected in one sentence, its traceback in the log."""
    if isinstance(error, ValueError) and is_our_own(error):
        return str(error)
    logging.getLogger(__name__).info("The try of a %s model failed.", model_type, exc_info=error)
    return (
        f"{model_type} models cannot be run this way: a try on {TOKENS} tokens failed ({type(error).__name__}: "
        f"{' '.join(str(error).split())[:160].rstrip('.')})."
    )


def is_our_own(error: Exception) -> bool:
    """Whether kvviz itself raised it, and so has found the words for a reader."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals["__name__"].startswith("kvviz.")

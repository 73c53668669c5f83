"""How long will it take? Asked before a long run starts, so that nobody waits for what will never end."""

from __future__ import annotations

import math
import time
from weakref import WeakKeyDictionary

import torch
from transformers import PreTrainedModel

from kvviz.choices.setup import Setup
from kvviz.policies.base import ATTENTION_STATISTICS
from kvviz.run.recompute import AFFORDABLE_TOKENS
from kvviz.run.replay import replay

TRIED_TOKENS, TRIES = 64, 2
BY_ROW = 3.5  # of a plain reading, for policies that look at attention row by row (measured: 3.3 to 3.5)
BY_POSITION = 1.3  # for the others (measured: 1.1 to 1.3)
BY_STEP = 5.0  # a written token, of a plainly read one (two cores: 5 ms read, 26 to 40 written)
_paces: WeakKeyDictionary[PreTrainedModel, float] = WeakKeyDictionary()


def seconds_per_token(model: PreTrainedModel) -> float:
    """What one token of a plain reading takes here, from two short ones, the first time a model is asked about."""
    if model not in _paces:
        ids = torch.arange(TRIED_TOKENS) % model.config.get_text_config(decoder=True).vocab_size
        times = []
        for _ in range(TRIES):
            started = time.perf_counter()
            replay(model, ids.tolist(), Setup())
            times.append((time.perf_counter() - started) / TRIED_TOKENS)
        _paces[model] = min(times)
    return _paces[model]


def work(setup: Setup, tokens: int) -> float:
    """How many plainly read tokens the reading of so many under a setup is worth, roughly."""
    policy = setup.policy
    if policy.recomputes:  # a pass over the whole window for each, and of a long text for some
        window = min(policy.size or tokens, tokens)
        return min(tokens * window, AFFORDABLE_TOKENS + window)
    by_row = not policy.acts_once and any(name in ATTENTION_STATISTICS for name in policy.needs)
    return tokens * (BY_ROW if by_row else BY_POSITION)


def writing(setup: Setup, prompt: int, new: int) -> float:
    """The same of writing so many new tokens after a prompt, a step each."""
    if setup.policy.recomputes:  # nothing is sampled: each token is a pass over the window
        return prompt + new * min(setup.policy.size or prompt + new, prompt + new)
    return work(setup, prompt) + BY_STEP * new


def refuse_long(model: PreTrainedModel, tokens: float, limit_seconds: float, cure: str) -> None:
    """ValueError with the estimated time where reading so many tokens (see ``work``) would take too long."""
    seconds = tokens * seconds_per_token(model)
    if seconds > limit_seconds:
        raise ValueError(
            f"This would take about {duration(seconds)} here ({math.ceil(tokens):,} tokens to read, "
            f"{1000 * seconds_per_token(model):.2g} ms each), more than the limit of {duration(limit_seconds)}; {cure}."
        )


def duration(seconds: float) -> str:
    """In the unit that fits."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"

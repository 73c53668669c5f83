"""Sink ablation: one text and one budget, with and without the first tokens, and with other first tokens.

Xiao et al. (StreamingLLM, 2023) put line breaks where the first four tokens were: if the loss stays low, it is their
place that matters and not what they say. Miller (2023) lets the softmax abstain: a model trained otherwise may not
know how to use that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedModel

from kvviz.choices.setup import Setup
from kvviz.policies.full import Full
from kvviz.policies.streaming import Streaming
from kvviz.policies.window import Window
from kvviz.run.replay import replay


@dataclass(frozen=True)
class Outcome:
    """One row of the ablation: what was run, and the mean loss of the tokens after the prompt."""

    name: str
    setup: Setup
    loss: float  # nats per token
    cache_bytes: int


def ablations(budget: int, sinks: int) -> list[tuple[str, Setup, bool]]:
    """Name, setup, and whether the first tokens are replaced by line breaks."""
    window, streaming = Window(budget), Streaming(budget, sinks)
    return [
        ("full cache", Setup(Full()), False),
        ("window", Setup(window), False),
        ("sinks + window", Setup(streaming), False),
        ("line breaks as sinks + window", Setup(streaming), True),
        ("full cache, off-by-one softmax", Setup(Full(), softmax="off_by_one"), False),
        ("window, off-by-one softmax", Setup(window, softmax="off_by_one"), False),
    ]


def ablate_sinks(
    model: PreTrainedModel,
    token_ids: Sequence[int],
    *,
    budget: int,
    sinks: int,
    prompt_tokens: int,
    line_break: int,
    progress: Callable[[str, float], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> list[Outcome]:
    """Every row on the same text; the loss is that of the tokens after the prompt, which no row changes.

    Raises ValueError for fewer tokens after the prompt than one, or a prompt that the replaced tokens exceed.
    """
    if not sinks < prompt_tokens < len(token_ids):
        raise ValueError(
            f"The sink ablation scores what follows a prompt of {prompt_tokens} of {len(token_ids)} tokens and changes "
            f"its first {sinks}; choose a prompt longer than {sinks} and shorter than the text."
        )
    rows, outcomes = ablations(budget, sinks), []
    replaced = [line_break] * sinks + list(token_ids[sinks:])
    for place, (name, setup, is_replaced) in enumerate(rows):

        def tell(share: float, name: str = name, place: int = place) -> None:
            if progress is not None:
                progress(f"experiment {place + 1} of {len(rows)}: {name}", (place + share) / len(rows))

        ids = replaced if is_replaced else token_ids
        trace = replay(model, ids, setup, prompt_tokens=prompt_tokens, progress=tell, is_cancelled=is_cancelled)
        loss = float(np.nanmean(trace.nll[prompt_tokens - 1 :]))
        outcomes.append(Outcome(name, setup, loss, trace.cache_bytes))
    return outcomes

"""Generate: the model chooses the tokens. After the prompt, blocks of one; this is what is timed and counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.choices.setup import Setup
from kvviz.measures.sinks import SINKS
from kvviz.run.engine import Pass
from kvviz.run.progress import Cancelled
from kvviz.run.recompute import RecomputePass
from kvviz.run.refusals import learned_positions, refuse_beyond_trained
from kvviz.run.replay import BLOCK, checked_ids, clock, open_pass, parts, recorder_for, token_losses, traced
from kvviz.run.trace import Trace


def generate(
    model: PreTrainedModel,
    prompt_ids: Sequence[int],
    setup: Setup,
    max_new_tokens: int,
    *,
    stop_at: Collection[int] = (),
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
    block: int = BLOCK,
    measure: bool = False,
    sinks: int = SINKS,
    maps: Iterable[tuple[int, int]] = (),
    progress: Callable[[float], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Trace:
    """Continue a prompt under a setup; greedy at temperature 0, else sampled with a seed of its own.

    Stops after ``max_new_tokens`` or at a token of ``stop_at``. The last new token is chosen but not fed: the trace's
    ``token_ids``, lifetimes and cache are those of the processed tokens, ``chosen`` has all the new ones.
    """
    ids = checked_ids(model, prompt_ids)
    check_sampling(max_new_tokens, temperature, top_p, seed)
    if not setup.policy.recomputes:
        check_learned(model, len(ids), max_new_tokens)
    refuse_beyond_trained(model, setup, len(ids) + max_new_tokens - 1, len(ids))  # the last one is chosen and not read
    recorder = recorder_for(model, len(ids) + max_new_tokens, sinks, maps) if measure or maps else None
    run = open_pass(model, setup, len(ids), recorder)
    generator = torch.Generator(device="cpu").manual_seed(seed)
    started = clock(model)
    logits, losses = prefill(run, ids, block, is_cancelled)
    read_at = clock(model)
    chosen: list[int] = []
    first_at = started
    while len(chosen) < max_new_tokens:
        if is_cancelled is not None and is_cancelled():
            raise Cancelled
        if chosen:
            logits = run.feed(chosen[-1:])
        chosen.append(choose(logits[-1], temperature, top_p, generator))
        losses.append(token_losses(logits[-1:], logits.new_tensor(chosen[-1:], dtype=torch.long)))
        if len(chosen) == 1:
            first_at = clock(model)
        if progress is not None:
            progress(len(chosen) / max_new_tokens)
        if chosen[-1] in stop_at:
            break
    ended = clock(model)
    processed = torch.cat([ids, ids.new_tensor(chosen[:-1])])
    rate = (len(chosen) - 1) / (ended - first_at) if len(chosen) > 1 else None
    return traced(
        run,
        "generated",
        processed,
        len(ids),
        torch.cat(losses)[: len(processed) - 1],
        ended - started,
        recorder,
        chosen=np.array(chosen),
        prefill_seconds=read_at - started,
        ttft_seconds=first_at - started,
        tokens_per_second=rate,
    )


def prefill(
    run: Pass | RecomputePass, ids: Tensor, block: int, is_cancelled: Callable[[], bool] | None
) -> tuple[Tensor, list[Tensor]]:
    """Feed the prompt in blocks; the logits of the last block and the losses inside the prompt."""
    losses = []
    logits = ids.new_empty(0)
    for start, part in parts(ids, block, run.setup, len(ids)):
        if is_cancelled is not None and is_cancelled():
            raise Cancelled
        logits = run.feed(part)
        losses.append(token_losses(logits, ids[start + 1 : start + len(part) + 1]))
    return logits, losses


def choose(logits: Tensor, temperature: float, top_p: float, generator: torch.Generator) -> int:
    """The next token from logits (vocabulary,): the likeliest, or a draw from the smallest set of mass ``top_p``."""
    if temperature == 0:
        return int(logits.argmax())
    wide = logits.double().cpu()  # and below its highest, so that no temperature or share is too small
    shares, order = ((wide - wide.max()) / temperature).softmax(-1).sort(descending=True)
    is_spare = shares.cumsum(-1) - shares >= top_p  # the likeliest token is never spare
    shares = shares.masked_fill(is_spare, 0)
    return int(order[torch.multinomial(shares, 1, generator=generator)])


def check_learned(model: PreTrainedModel, prompt: int, max_new_tokens: int) -> None:
    """Refuse more new tokens than the model has learned positions for; the last one is chosen and not read."""
    learned = learned_positions(model)
    if learned is not None and prompt + max_new_tokens - 1 > learned:
        raise ValueError(
            f"A prompt of {prompt} tokens and max_new_tokens={max_new_tokens} need more than the {learned} positions "
            f"this {model.config.model_type} model learned; choose at most {max(0, learned - prompt + 1)} new tokens."
        )


def check_sampling(max_new_tokens: int, temperature: float, top_p: float, seed: int) -> None:
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed={seed} must be a whole number from 0 to {2**31 - 1}.")
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens={max_new_tokens} must be at least 1.")
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature={temperature} must be 0 (greedy) or a positive number.")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p} must be above 0 and at most 1.")

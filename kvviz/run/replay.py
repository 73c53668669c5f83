"""Replay: the text is given, the blocks are large. Exact, at the speed of a prefill, with memory flat in T."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.choices.setup import Setup
from kvviz.measures.sinks import SINKS
from kvviz.models.heads import kv_heads_of
from kvviz.run.engine import Pass
from kvviz.run.progress import Progress, Watch
from kvviz.run.recompute import RecomputePass
from kvviz.run.recorder import AttentionRecorder
from kvviz.run.refusals import refuse_beyond_trained
from kvviz.run.trace import Trace
from kvviz.text.counting import plural

BLOCK = 256


def replay(
    model: PreTrainedModel,
    token_ids: Sequence[int],
    setup: Setup,
    *,
    prompt_tokens: int | None = None,
    block: int = BLOCK,
    measure: bool = False,
    sinks: int = SINKS,
    maps: Iterable[tuple[int, int]] = (),
    progress: Callable[[float], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
    on_losses: Callable[[NDArray[np.float64]], None] | None = None,
) -> Trace:
    """Run the model over a given text under a setup, token by token in effect, in blocks in fact.

    ``block`` = 1 is stepping, with tensors that really shrink at every token. ``measure`` takes sink mass, entropy,
    mean distance and received mass of every layer and head; ``maps`` asks for whole maps of (layer, query head).
    After every block ``on_losses`` is given the losses so far, (t,) in nats.
    Raises ValueError for input with no meaning and Cancelled when ``is_cancelled`` answers yes, asked at every layer.
    """
    ids = checked_ids(model, token_ids)
    prompt_tokens = checked_prompt(prompt_tokens, len(ids))
    if block < 1:
        raise ValueError(f"block={block} must be at least 1.")
    refuse_beyond_trained(model, setup, len(ids), prompt_tokens)
    recorder = recorder_for(model, len(ids), sinks, maps) if measure or maps else None
    run = open_pass(model, setup, prompt_tokens, recorder, len(ids))
    if setup.policy.recomputes:
        block = min(block, 8)  # each row may be a forward: look often whether the run is still wanted
    started = clock(model)
    losses, hits = [], []
    watch = RunWatch(run, len(ids), progress, is_cancelled)
    for start, part in parts(ids, block, setup, prompt_tokens):
        watch.begins(start, len(part))
        logits, targets = run.feed(part), ids[start + 1 : start + len(part) + 1]
        losses.append(token_losses(logits, targets))
        hits.append(logits[: len(targets)].argmax(-1) == targets)
        if on_losses is not None:
            on_losses(torch.cat(losses).cpu().numpy())
    watch.tell(1.0)
    seconds = clock(model) - started
    is_likeliest = torch.cat(hits).cpu().numpy()
    return traced(run, "replayed", ids, prompt_tokens, torch.cat(losses), seconds, recorder, is_likeliest=is_likeliest)


def parts(ids: Tensor, block: int, setup: Setup, prompt_tokens: int) -> Iterator[tuple[int, Tensor]]:
    """Where each block begins, and its tokens.

    A policy that acts once needs the attention of the prompt's last queries alone: a block begins with them, so that
    the others are read without forming their weights.
    """
    cuts = {*range(0, len(ids), block), len(ids)}
    voters = prompt_tokens - setup.policy.observes
    if setup.policy.acts_once and setup.policy.observes and 0 < voters < len(ids):
        cuts.add(voters)
    for start, end in pairwise(sorted(cuts)):
        yield start, ids[start:end]


class RunWatch(Watch):
    """The watch of a run: told before a block and at each of its layers."""

    def __init__(
        self,
        run: Pass | RecomputePass,
        tokens: int,
        progress: Progress | None,
        is_cancelled: Callable[[], bool] | None,
    ) -> None:
        super().__init__(progress, is_cancelled)
        self.layers, self.tokens = run.layers, tokens
        self.start = self.rows = 0
        run.on_layer = self.layer

    def begins(self, start: int, rows: int) -> None:
        self.start, self.rows = start, rows
        self.tell(start / self.tokens)

    def layer(self, layer: int) -> None:
        self.tell((self.start + self.rows * layer / self.layers) / self.tokens)


def open_pass(
    model: PreTrainedModel,
    setup: Setup,
    prompt_tokens: int,
    recorder: AttentionRecorder | None,
    tokens: int | None = None,
) -> Pass | RecomputePass:
    """The pass that fits the policy; ``tokens`` lets a re-computing one choose a sample of a long text."""
    if setup.policy.recomputes:
        return RecomputePass(model, setup, tokens=tokens, recorder=recorder)
    return Pass(model, setup, prompt_tokens=prompt_tokens, recorder=recorder)


def checked_ids(model: PreTrainedModel, token_ids: Sequence[int]) -> Tensor:
    """The tokens as a tensor; ValueError if there are none or the model has no such token."""
    ids = torch.tensor(np.asarray(token_ids), device=model.device).long()
    if ids.ndim != 1 or not len(ids):
        raise ValueError("The text is empty: there is no token to read. Give a text of at least one token.")
    vocabulary = model.config.get_text_config(decoder=True).vocab_size
    if int(ids.min()) < 0 or int(ids.max()) >= vocabulary:
        worst = int(ids.max()) if int(ids.max()) >= vocabulary else int(ids.min())
        raise ValueError(f"Token {worst} does not exist: this model knows tokens 0–{vocabulary - 1}.")
    return ids


def checked_prompt(prompt_tokens: int | None, tokens: int) -> int:
    """Where the prompt ends: half the text unless said otherwise."""
    if prompt_tokens is None:
        return max(1, tokens // 2)
    if not 1 <= prompt_tokens <= tokens:
        raise ValueError(
            f"The prompt cannot end after {prompt_tokens} of {plural(tokens, 'token')}; "
            f"choose a number from 1 to {tokens}."
        )
    return prompt_tokens


def token_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """−log p of each target under its row, (R,) in nats and float64; rows beyond the last target are left out."""
    logits = logits[: len(targets)]
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return torch.nn.functional.cross_entropy(wide, targets, reduction="none").double()


def recorder_for(model: PreTrainedModel, tokens: int, sinks: int, maps: Iterable[tuple[int, int]]) -> AttentionRecorder:
    config = model.config.get_text_config(decoder=True)
    heads, kv_heads = config.num_attention_heads, kv_heads_of(config)
    return AttentionRecorder(config.num_hidden_layers, heads, tokens, sinks=sinks, kv_heads=kv_heads, maps=maps)


def clock(model: PreTrainedModel) -> float:
    """Seconds, read after the device has finished what it was given."""
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    elif model.device.type == "mps":
        torch.mps.synchronize()
    return time.perf_counter()


def traced(
    run: Pass | RecomputePass,
    kind: str,
    ids: Tensor,
    prompt_tokens: int,
    losses: Tensor,
    seconds: float,
    recorder: AttentionRecorder | None,
    **more: Any,
) -> Trace:
    """The finished pass as a Trace; ValueError where the model's answers are no numbers."""
    if bool(losses.isnan().any()) and not run.setup.policy.recomputes:  # that one leaves positions out
        raise ValueError(
            f"The model answers with something that is no number (from token {int(losses.isnan().nonzero()[0])} on): "
            "its weights hold NaN, or overflow in this number format; choose another dtype or sound weights."
        )
    measures = {} if recorder is None else recorder.taken(len(ids))
    quantised = run.quantised_at()
    return Trace(
        kind=kind,
        setup=run.setup,
        token_ids=ids.cpu().numpy(),
        prompt_tokens=prompt_tokens,
        evicted_at=as_steps(run.evicted_at()),
        nll=losses.cpu().numpy(),
        freed_at=as_steps(run.freed_at()),
        stored=tuple(run.stored),
        query_heads=run.model.config.get_text_config(decoder=True).num_attention_heads,
        cache_bytes=run.cache_bytes,
        seconds=seconds,
        notes=(*run.setup.policy.notes(len(ids), prompt_tokens), *run.notes()),
        quantised_at=None if quantised is None else (as_steps(quantised[0]), as_steps(quantised[1])),
        **measures,
        **more,
    )


def as_steps(steps: Tensor) -> NDArray[np.int32]:
    return steps.cpu().numpy().astype(np.int32)

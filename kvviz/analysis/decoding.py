"""What one new token costs: the time of a step, the bytes it must read, and how fast this machine can read them.

A step reads every weight that it multiplies with, and every key and value in the cache, once. It can be no faster than
reading them takes; what is above that limit is arithmetic and overhead.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from transformers import PreTrainedModel

from kvviz.choices.setup import Setup
from kvviz.choices.storage import Native
from kvviz.memory.account import account
from kvviz.memory.config import shape_of
from kvviz.memory.retention import ask_for
from kvviz.memory.shape import NUMBER_BYTES
from kvviz.run.generate import generate
from kvviz.run.progress import Progress

STEPS = 9  # timed after each prompt; the first new token belongs to the prompt
READ_BYTES, READ_ROUNDS = 256 * 2**20, 7  # more than any processor's cache holds


@dataclass(frozen=True)
class StepCost:
    """The steps after a prompt of ``tokens``: seconds as median, least and most; bytes of the cache at the end."""

    tokens: int
    seconds: float
    low: float
    high: float
    cache_bytes: int


def step_costs(
    model: PreTrainedModel,
    ids: Sequence[int],
    setup: Setup,
    lengths: Sequence[int],
    *,
    progress: Progress | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> list[StepCost]:
    """Time a few steps after prompts of these lengths, cut from ``ids``; one short run before warms up.

    Raises ValueError for a length without a token or beyond the text, and Cancelled.
    """
    bad = [length for length in lengths if not 1 <= length <= len(ids)]
    if bad:
        raise ValueError(
            f"A prompt of {bad[0]} tokens cannot be cut from a text of {len(ids)}; choose 1 to {len(ids)}."
        )
    generate(model, ids[: min(lengths)], setup, 2, is_cancelled=is_cancelled)
    costs, done, whole = [], 0, sum(lengths)
    for length in lengths:
        costs.append(step_cost(model, ids[:length], setup, is_cancelled))
        done += length
        if progress is not None:
            progress(done / whole)
    return costs


def step_cost(
    model: PreTrainedModel, ids: Sequence[int], setup: Setup, is_cancelled: Callable[[], bool] | None = None
) -> StepCost:
    """Time ``STEPS`` steps after one prompt, each by the clock when its token had been chosen."""
    marks: list[float] = []
    trace = generate(
        model,
        ids,
        setup,
        STEPS + 1,
        progress=lambda share: marks.append(time.perf_counter()),
        is_cancelled=is_cancelled,
    )
    times = [later - earlier for earlier, later in pairwise(marks)]
    return StepCost(len(ids), statistics.median(times), min(times), max(times), trace.cache_bytes)


def weight_bytes(model: PreTrainedModel) -> int:
    """Bytes of the weights that a step multiplies with: all but an embedding table of which it reads one row."""
    table: Any = model.get_input_embeddings().weight
    head: Any = model.get_output_embeddings()
    is_tied = head is not None and head.weight is table
    read = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    return read if is_tied else read - table.numel() * table.element_size()


def counted_step(model: PreTrainedModel, setup: Setup, tokens: int) -> tuple[int, int, int]:
    """Of a step after so many tokens, by formula: bytes of the cache, multiply-adds with weights and with the cache.

    A query head multiplies with the keys and with the values of its KV head, so the work with the cache is its numbers
    times the query heads that share them.
    """
    shape = shape_of(model.config.to_dict(), "the model")
    word = str(model.dtype).removeprefix("torch.")
    held, native = (
        account(shape, ask_for(setup.policy, shape, tokens=tokens, dtype=word, storage=storage))
        for storage in (setup.storage, Native())
    )
    query_heads = model.config.get_text_config(decoder=True).num_attention_heads
    with_cache = sum(row.bytes // NUMBER_BYTES[word] * query_heads // row.kv_heads for row in native.rows)
    return held.bytes, weight_bytes(model) // NUMBER_BYTES[word], with_cache


def read_bandwidth(device: torch.device) -> float:
    """Bytes per second that this device reads from memory, the best of a few sums over a large array."""
    numbers = torch.ones(READ_BYTES // 4, device=device)
    best = float("inf")
    for _ in range(READ_ROUNDS):
        settle(device)
        started = time.perf_counter()
        numbers.sum()
        settle(device)
        best = min(best, time.perf_counter() - started)
    return READ_BYTES / best


def settle(device: torch.device) -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()

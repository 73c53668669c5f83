"""The run report: what a setup costs on this machine, and what it still finds, measured in one go."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from kvviz.analysis import estimate
from kvviz.analysis.tasks import TASKS
from kvviz.analysis.tasks.base import Encode
from kvviz.analysis.tasks.scoring import grid
from kvviz.choices.setup import Setup
from kvviz.choices.storage import Int4, Offload
from kvviz.models import Loaded
from kvviz.policies.streaming import SINKS, Streaming
from kvviz.run.generate import generate
from kvviz.run.refusals import refuse_beyond_trained
from kvviz.run.replay import replay
from kvviz.run.trace import Trace

WARM_TOKENS, LEAST_TOKENS = 16, 2 * SINKS + 2
DEPTHS = (0, 25, 50, 75, 100)
Tell = Callable[[str], None]


def run_report(
    loaded: Loaded,
    setup: Setup,
    *,
    ids: Sequence[int],
    max_new_tokens: int,
    repeats: int,
    encode: Encode,
    filler: Sequence[int],
    tell: Tell = lambda what: None,
) -> dict[str, Any]:
    """Everything a report must name, with its units in the names; tokens/s are those after the first new token.

    ``ids`` (P,) are the prompt. One short run warms up and is not counted; then ``repeats`` runs give the median and
    the range. Raises ValueError for fewer than two new tokens, fewer than one repeat or a prompt shorter than a needle.
    """
    check_report(len(ids), max_new_tokens, repeats)
    model = loaded.model
    refuse_beyond(model, setup, len(ids), max_new_tokens)
    if loaded.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(loaded.device)
    tell("warming up")
    generate(model, ids[:WARM_TOKENS], setup, 2)
    traces = []
    for repeat in range(repeats):
        tell(f"run {repeat + 1} of {repeats}")
        traces.append(generate(model, ids, setup, max_new_tokens))
    return {
        "model": loaded.card.name,
        "dtype": str(loaded.dtype).removeprefix("torch."),
        "device": str(loaded.device),
        "threads": torch.get_num_threads(),
        "setup": str(setup),
        "prompt_tokens": len(ids),
        "new_tokens": max_new_tokens,
        "concurrency": 1,
        "repeats": repeats,
        "prefill_seconds": median(trace.prefill_seconds for trace in traces),
        "ttft_seconds": median(trace.ttft_seconds for trace in traces),
        "tokens_per_second": spread([rate_of(trace) for trace in traces]),
        "cache_bytes": traces[-1].cache_bytes,
        "needles": needles(loaded, setup, len(ids), encode, filler, tell),
        "after": [after(loaded, other, ids, max_new_tokens, tell) for other in variants(setup, len(ids))],
        # last, so that the peaks are those of everything above
        "peak_host_bytes": peak_host_bytes(),
        "peak_device_bytes": torch.cuda.max_memory_allocated(loaded.device) if loaded.device.type == "cuda" else None,
    }


def check_report(prompt_tokens: int, max_new_tokens: int, repeats: int) -> None:
    """Refuse what leaves nothing to time."""
    if max_new_tokens < 2:
        raise ValueError(f"max_new_tokens={max_new_tokens} gives no rate; a report needs at least 2.")
    if repeats < 1:
        raise ValueError(f"{repeats} repeats measure nothing; give at least 1.")
    if prompt_tokens < LEAST_TOKENS:
        raise ValueError(f"A prompt of {prompt_tokens} tokens is too short for a report; give at least {LEAST_TOKENS}.")


def refuse_beyond(model: PreTrainedModel, setup: Setup, prompt_tokens: int, max_new_tokens: int) -> None:
    """ValueError before anything runs where the setup, or one it is compared with, needs positions nobody trained."""
    tokens = prompt_tokens + max_new_tokens - 1
    refuse_beyond_trained(model, setup, tokens, prompt_tokens)
    for other in variants(setup, prompt_tokens):
        refuse_beyond_trained(model, other, tokens, prompt_tokens, "A report compares with other setups: ")


def report_work(setup: Setup, prompt_tokens: int, max_new_tokens: int, repeats: int) -> float:
    """How many plainly read tokens a report is worth (see ``estimate.work``)."""
    others = variants(setup, prompt_tokens)
    read = sum(estimate.work(one, prompt_tokens) for one in [*others, *[setup, Setup()] * len(DEPTHS)])
    once = [estimate.writing(one, prompt_tokens, max_new_tokens) for one in (setup, *others)]
    return read + repeats * once[0] + sum(once[1:])


def median(values: Any) -> float:
    return float(statistics.median(values))


def rate_of(trace: Trace) -> float:
    assert trace.tokens_per_second is not None, "at least two new tokens were asked for"
    return trace.tokens_per_second


def spread(rates: Sequence[float]) -> dict[str, float]:
    return {"median": median(rates), "low": min(rates), "high": max(rates)}


def needles(
    loaded: Loaded, setup: Setup, tokens: int, encode: Encode, filler: Sequence[int], tell: Tell
) -> dict[str, Any] | None:
    """How often the pass key is still found in a prompt of this length; None where it is too short for one."""
    task = TASKS["passkey"]
    if tokens < task.least_tokens:
        return None
    tell("looking for needles")
    asked: dict[str, Any] = {"tokens": tokens, "depths": DEPTHS, "seeds": 1}
    found = grid(loaded.model, encode, filler, task, setup, **asked)
    whole = found if setup == Setup() else grid(loaded.model, encode, filler, task, Setup(), **asked)
    return {
        "task": task.name,
        "found": found.found,
        "of": len(found.cells),
        "interval": found.interval,
        "void": whole.is_void,
    }


def variants(setup: Setup, tokens: int) -> list[Setup]:
    """The full cache; evicted to a quarter; quantised; offloaded: the three ways to hold less, one at a time."""
    budget = max(2 * SINKS, tokens // 4)
    full = Setup(softmax=setup.softmax, pattern=setup.pattern)
    return [
        full,
        replace(full, policy=Streaming(budget=budget)),
        replace(full, storage=Int4()),
        replace(full, storage=Offload(resident=budget)),
    ]


def after(loaded: Loaded, setup: Setup, ids: Sequence[int], max_new_tokens: int, tell: Tell) -> dict[str, Any]:
    """The loss of the prompt's second half under a setup, the bytes held and the rate of writing on."""
    tell(f"after {setup}")
    read = replay(loaded.model, ids, setup)
    written = generate(loaded.model, ids, setup, max_new_tokens)
    return {
        "setup": str(setup),
        "nll": float(np.mean(read.nll[read.prompt_tokens - 1 :])),
        "cache_bytes": written.cache_bytes,
        "tokens_per_second": rate_of(written),
    }


def peak_host_bytes() -> int | None:
    """The most memory this process has held; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

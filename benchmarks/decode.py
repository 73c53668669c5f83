"""How fast is a token written? Ratios to the stock model and to reading the weights and the cache from memory.

All contestants hold as many tokens and take turns of a few steps, so that a slow minute of the machine hits all alike.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from benchmarks.bandwidth import reading
from benchmarks.material import loaded, text_ids
from benchmarks.results import Figure, ratio_of_medians
from benchmarks.timing import seconds_of
from kvviz.analysis.decoding import counted_step, weight_bytes
from kvviz.choices.setup import Setup, parse_setup
from kvviz.models import load
from kvviz.run.engine import Pass

HELD, STEPS, TURN = 512, 48, 6
SPECS = ("full", "window:budget=512", "streaming:budget=512", "h2o:budget=512", "tova:budget=512", "snapkv:budget=512")

Step = Callable[[Tensor], object]


def stock_steps(model: PreTrainedModel, prompt: Tensor) -> Step:
    """One step of the stock model with a DynamicCache and sdpa after the prompt."""
    past = DynamicCache(config=model.config)

    def step(token: Tensor) -> object:
        model.set_attn_implementation("sdpa")
        where = torch.tensor([[past.get_seq_length()]])
        with torch.inference_mode():
            return model(input_ids=token.view(1, -1), position_ids=where, cache=past, use_cache=True).logits

    model.set_attn_implementation("sdpa")
    with torch.inference_mode():
        model(input_ids=prompt[None], cache=past, use_cache=True, logits_to_keep=1)
    return step


def kvviz_steps(model: PreTrainedModel, spec: str, prompt: Tensor) -> Step:
    run = Pass(model, parse_setup({"policy": spec}), prompt_tokens=len(prompt))
    run.feed(prompt, last_only=True)
    return run.feed


def step_seconds(contestants: dict[str, Step], ids: Tensor) -> dict[str, list[float]]:
    """Seconds of every step, a few steps a turn; the first of a turn meets cold memory and does not count."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for part in ids.split(TURN):
        for name, step in contestants.items():
            seconds = [seconds_of(lambda step=step, token=token: step(token)) for token in part.view(-1, 1)]
            times[name] += seconds[1:]
    return times


def figures() -> Iterator[Figure]:
    """Each setup by the stock model, and by reading weights and cache from memory."""
    model, ids = loaded().model, text_ids(HELD + STEPS)
    prompt, rest = ids[:HELD], ids[HELD:]
    contestants: dict[str, Step] = {"stock": stock_steps(model, prompt)}
    contestants |= {spec: kvviz_steps(model, spec, prompt) for spec in SPECS}
    contestants["full, bfloat16"] = kvviz_steps(load(dtype="bfloat16", device="cpu").model, "full", prompt)
    held = counted_step(model, Setup(), HELD)[0]
    read = reading(weight_bytes(model) + held)
    contestants["reading"] = lambda token: read()
    times = step_seconds(contestants, rest)
    yield middle("a token of the stock DynamicCache", times["stock"])
    yield middle("reading weights and cache", times["reading"])
    for name in list(contestants)[1:-1]:
        is_asked = name == "full"
        what = f"a token, {name}, {HELD} held"
        yield ratio_of_medians(f"{what}, by the stock DynamicCache", times[name], times["stock"], "≤ 0.8" * is_asked)
        yield ratio_of_medians(f"{what}, by reading alone", times[name], times["reading"], "≤ 2" * is_asked)


def middle(name: str, seconds: Sequence[float]) -> Figure:
    """The median time, as the base that the ratios stand on."""
    return Figure(name, 1000 * statistics.median(seconds), "ms")

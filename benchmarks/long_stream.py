"""What a long text costs under a bounded cache, as ratios inside one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks import stock
from benchmarks.decode import kvviz_steps
from benchmarks.material import loaded, text_ids
from benchmarks.timing import ratio, seconds_of, take_turns
from kvviz.choices.setup import parse_setup
from kvviz.run.engine import Pass
from kvviz.run.recompute import RecomputePass
from kvviz.run.replay import BLOCK, replay, token_losses

LOSS_TOKENS, WINDOW, NEAR, FAR, PROMPT = 4096, 1024, 1024, 8192, 1024
BOUNDED = ("window:budget=256", "streaming:budget=256", "h2o:budget=256", "tova:budget=256")
ROWS, BLOCKS, STEPS, ROUNDS = 64, 7, 40, 3


def lines() -> Iterator[str]:
    yield from loss_lines()
    yield from recompute_lines()
    yield from prompt_lines()
    yield from flat_lines()


def loss_lines() -> Iterator[str]:
    """Both sides read the same chunks and take the loss of every token."""
    model, ids = loaded().model, text_ids(LOSS_TOKENS)
    contestants: dict[str, Callable[[], object]] = {
        "plain": lambda: [
            token_losses(rows, ids[at + 1 : at + len(rows) + 1]) for at, rows in stock.chunks(model, ids, BLOCK)
        ],
        "streaming": lambda: replay(model, ids, parse_setup({"policy": "streaming:budget=256"})),
    }
    times = take_turns(contestants, 2)
    yield f"Loss of {LOSS_TOKENS} tokens, streaming:budget=256 by the stock model in chunks of {BLOCK}; wanted ≤ 1.3"
    yield f"  {ratio(times, 'streaming', 'plain'):.2f}×"


def recompute_lines() -> Iterator[str]:
    """One token of each, with as many tokens in sight."""
    model, ids = loaded().model, text_ids(2 * WINDOW)
    step = kvviz_steps(model, f"streaming:budget={WINDOW}", ids[: WINDOW + 1])
    anew = RecomputePass(model, parse_setup({"policy": f"recompute:budget={WINDOW}"}))
    anew.ids = ids[: WINDOW + 1]  # read by nobody so far: the first token asked for is already a window of its own
    ratios = []
    for token in ids[WINDOW + 1 :][: ROUNDS + 1].view(-1, 1):
        several = statistics.median(seconds_of(lambda token=token: step(token)) for _ in range(5))
        ratios.append(seconds_of(lambda token=token: anew.feed(token)) / several)
    yield f"Re-computation by streaming, one token at a window of {WINDOW}; wanted ≥ 22.2"
    yield f"  {statistics.median(ratios[1:]):.1f}×"


def prompt_lines() -> Iterator[str]:
    model, ids = loaded().model, text_ids(PROMPT)
    contestants: dict[str, Callable[[], object]] = {
        "plain": lambda: list(stock.chunks(model, ids, PROMPT, last_only=True))
    }
    for name in ("snapkv", "pyramidkv", "knorm", "streaming"):
        contestants[name] = lambda name=name: compressed(ids, f"{name}:budget=256")
    times = take_turns(contestants, ROUNDS)
    yield f"Reading and compressing a prompt of {PROMPT} tokens to 256, by the stock model reading it"
    for name in list(contestants)[1:]:
        yield f"  {name:28} {ratio(times, name, 'plain'):.2f}×"


def compressed(ids: Tensor, spec: str, block: int = BLOCK) -> Pass:
    """A pass that has read the prompt in blocks and holds what the policy left of it."""
    run = Pass(loaded().model, parse_setup({"policy": spec}), prompt_tokens=len(ids))
    for part in ids.split(block):
        run.feed(part, last_only=True)
    return run


def flat_lines() -> Iterator[str]:
    """Two runs of one policy, one near the start of a text and one far on, take turns: blocks, then single tokens."""
    yield f"Time of a token at T = {FAR} by that at {NEAR}; wanted ≤ 1.05"
    for spec in BOUNDED:
        near, far = (opened(spec, end) for end in (NEAR, FAR))
        blocks = turns(near, far, ROWS, BLOCKS)
        steps = turns(near, far, 1, STEPS)
        yield f"  {spec:28} blocks {blocks:.2f}×   single tokens {steps:.2f}×"


def opened(spec: str, end: int) -> Pass:
    """A pass that has read the text up to what is timed, which ends at ``end``."""
    run = Pass(loaded().model, parse_setup({"policy": spec}), prompt_tokens=1)
    for part in text_ids(FAR)[: end - BLOCKS * ROWS - STEPS].split(BLOCK):
        run.feed(part, last_only=True)
    return run


def turns(near: Pass, far: Pass, rows: int, rounds: int) -> float:
    """Median over the rounds of the far run's time by the near run's."""
    ids = torch.arange(rows) % 1000 + 1000  # which tokens they are costs nothing
    return statistics.median(
        seconds_of(lambda: far.feed(ids, last_only=True)) / seconds_of(lambda: near.feed(ids, last_only=True))
        for _ in range(rounds)
    )

"""What a long text costs under a bounded cache, as ratios inside one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks import stock
from benchmarks.decode import kvviz_steps
from benchmarks.material import loaded, text_ids
from benchmarks.results import Figure, ratio_figure
from benchmarks.timing import seconds_of, take_turns
from kvviz.choices.setup import parse_setup
from kvviz.run.engine import Pass
from kvviz.run.recompute import RecomputePass
from kvviz.run.replay import BLOCK, parts, replay, token_losses

LOSS_TOKENS, WINDOW, NEAR, FAR, PROMPT = 4096, 1024, 1024, 8192, 1024
BOUNDED = ("window:budget=256", "streaming:budget=256", "h2o:budget=256", "tova:budget=256")
ROWS, BLOCKS, STEPS, ROUNDS = 64, 7, 40, 3


def figures() -> Iterator[Figure]:
    yield from loss_figures()
    yield from recompute_figures()
    yield from prompt_figures()
    yield from flat_figures()


def loss_figures() -> Iterator[Figure]:
    """Both sides read the same chunks and take the loss of every token."""
    model, ids = loaded().model, text_ids(LOSS_TOKENS)
    contestants: dict[str, Callable[[], object]] = {
        "plain": lambda: [
            token_losses(rows, ids[at + 1 : at + len(rows) + 1]) for at, rows in stock.chunks(model, ids, BLOCK)
        ],
        "streaming": lambda: replay(model, ids, parse_setup({"policy": "streaming:budget=256"})),
    }
    times = take_turns(contestants, 2)
    what = f"loss of {LOSS_TOKENS:,} tokens, streaming:budget=256, by the stock model in chunks of {BLOCK}"
    yield ratio_figure(what, times["streaming"], times["plain"], "≤ 1.3")


def recompute_figures() -> Iterator[Figure]:
    """One token of each, with as many tokens in sight."""
    model, ids = loaded().model, text_ids(2 * WINDOW)
    step = kvviz_steps(model, f"streaming:budget={WINDOW}", ids[: WINDOW + 1])
    anew = RecomputePass(model, parse_setup({"policy": f"recompute:budget={WINDOW}"}))
    anew.ids = ids[: WINDOW + 1]  # read by nobody so far: the first token asked for is already a window of its own
    several, once = [], []
    for token in ids[WINDOW + 1 :][: ROUNDS + 1].view(-1, 1):
        several.append(statistics.median(seconds_of(lambda token=token: step(token)) for _ in range(5)))
        once.append(seconds_of(lambda token=token: anew.feed(token)))
    yield ratio_figure(
        f"re-computation by streaming, a token at a window of {WINDOW:,}", once[1:], several[1:], "≥ 22.2"
    )


def prompt_figures() -> Iterator[Figure]:
    """Reading a prompt and compressing it, by the stock model reading it."""
    model, ids = loaded().model, text_ids(PROMPT)
    contestants: dict[str, Callable[[], object]] = {
        "plain": lambda: list(stock.chunks(model, ids, PROMPT, last_only=True))
    }
    for name in ("snapkv", "pyramidkv", "knorm", "streaming"):
        contestants[name] = lambda name=name: compressed(ids, f"{name}:budget=256")
    times = take_turns(contestants, ROUNDS)
    for name in list(contestants)[1:]:
        what = f"compressing {PROMPT:,} tokens to 256, {name}, by the stock model reading them"
        yield ratio_figure(what, times[name], times["plain"])


def compressed(ids: Tensor, spec: str, block: int = BLOCK) -> Pass:
    """A pass that has read the prompt in blocks and holds what the policy left of it."""
    setup = parse_setup({"policy": spec})
    run = Pass(loaded().model, setup, prompt_tokens=len(ids))
    for _, part in parts(ids, block, setup, len(ids)):
        run.feed(part, last_only=True)
    return run


def flat_figures() -> Iterator[Figure]:
    """Two runs of one policy, one near the start of a text and one far on, take turns: blocks, then single tokens."""
    for spec in BOUNDED:
        near, far = (opened(spec, end) for end in (NEAR, FAR))
        for rows, rounds, what in ((ROWS, BLOCKS, f"a block of {ROWS}"), (1, STEPS, "a token")):
            name = f"{what} at T = {FAR:,} by that at {NEAR:,}, {spec}"
            yield ratio_figure(name, *turns(near, far, rows, rounds), "≤ 1.05")


def opened(spec: str, end: int) -> Pass:
    """A pass that has read the text up to what is timed, which ends at ``end``."""
    run = Pass(loaded().model, parse_setup({"policy": spec}), prompt_tokens=1)
    for part in text_ids(FAR)[: end - BLOCKS * ROWS - STEPS].split(BLOCK):
        run.feed(part, last_only=True)
    return run


def turns(near: Pass, far: Pass, rows: int, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of the far run and of the near one, in turns."""
    ids = torch.arange(rows) % 1000 + 1000  # which tokens they are costs nothing
    pairs = [
        (seconds_of(lambda: far.feed(ids, last_only=True)), seconds_of(lambda: near.feed(ids, last_only=True)))
        for _ in range(rounds)
    ]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

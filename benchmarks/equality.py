"""Are the numbers the same? Gaps in log-probabilities at T = 256, beside the stock model's own gap."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor

from benchmarks import stock
from benchmarks.material import loaded, text_ids
from benchmarks.results import Figure
from kvviz.choices.setup import Setup, parse_setup
from kvviz.policies import POLICIES
from kvviz.run.replay import open_pass

TOKENS, BUDGET = 256, 64
BLOCKS = (1, 3, 8)
WINDOWS = ("window", "rolling")  # without the first tokens float order is amplified, in the stock model too


def run(setup: Setup, ids: Tensor, block: int) -> tuple[Tensor, Tensor]:
    done = open_pass(loaded().model, setup, len(ids) // 2, None)
    rows = [done.feed(ids[start : start + block]) for start in range(0, len(ids), block)]
    return torch.cat(rows).log_softmax(-1), done.evicted_at()


def gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


@cache
def own_gap(ids: Tensor, window: int | None = None) -> float:
    """The stock model's own gap, the same blocks against one forward, with everything in sight or under a window."""
    mask = None if window is None else window_mask(len(ids), window)
    forward = stock.forward(loaded().model, ids, mask).log_softmax(-1)
    parts = (stock.chunks(loaded().model, ids, block, mask=mask) for block in BLOCKS)
    return max(gap(torch.cat([rows for _, rows in part]).log_softmax(-1), forward) for part in parts)


def window_mask(tokens: int, budget: int) -> Tensor:
    """True where a query sees a key, (T, T)."""
    ages = torch.arange(tokens)[:, None] - torch.arange(tokens)
    return (ages >= 0) & (ages < budget)


def figures() -> Iterator[Figure]:
    """The largest gap over all log-probabilities, in nats, and the lifetimes that differ."""
    ids = text_ids(TOKENS)
    forward = stock.forward(loaded().model, ids).log_softmax(-1)
    blocks = f"blocks of {', '.join(map(str, BLOCKS))}"
    yield Figure(f"stock model, T = {TOKENS}, {blocks} against one forward", own_gap(ids), "nats")
    yield Figure(f"stock model under a window of {BUDGET}, the same", own_gap(ids, BUDGET), "nats")
    allowed = f"≤ {max(2e-4, 2 * own_gap(ids)):.1e}"
    yield Figure("full against the stock forward", gap(run(Setup(), ids, 256)[0], forward), "nats", allowed)
    for name in (name for name, cls in POLICIES.items() if not cls.recomputes):
        setup = parse_setup({"policy": name if name == "full" else f"{name}:budget={BUDGET}"})
        base, kept = run(setup, ids, 256)
        others = [run(setup, ids, block) for block in BLOCKS]
        limit = f"≤ {max(2e-4, 2 * own_gap(ids, BUDGET)):.1e}" if name in WINDOWS else allowed
        what = f"{name}, {blocks} against 256"
        yield Figure(what, max(gap(rows, base) for rows, _ in others), "nats", limit)
        differing = max(int((kept != other).sum()) for _, other in others)
        yield Figure(f"{what}: lifetimes differing", differing, "", "≤ 0")

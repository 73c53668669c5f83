"""Are the numbers the same? Gaps in log-probabilities at T = 256, beside the stock model's own gap."""

from __future__ import annotations

from collections.abc import Iterator

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


def run(setup: Setup, ids: Tensor, block: int) -> tuple[Tensor, Tensor]:
    done = open_pass(loaded().model, setup, len(ids) // 2, None)
    rows = [done.feed(ids[start : start + block]) for start in range(0, len(ids), block)]
    return torch.cat(rows).log_softmax(-1), done.evicted_at()


def gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


def figures() -> Iterator[Figure]:
    """The largest gap over all log-probabilities, in nats, and the lifetimes that differ."""
    ids = text_ids(TOKENS)
    forward = stock.forward(loaded().model, ids).log_softmax(-1)
    own = gap(stock.steps(loaded().model, ids).log_softmax(-1), forward)
    allowed = f"≤ {max(2e-4, 2 * own):.1e}"
    yield Figure(f"stock model, T = {TOKENS}, stepping against one forward", own, "nats")
    yield Figure("full against the stock forward", gap(run(Setup(), ids, 256)[0], forward), "nats", allowed)
    for name in (name for name, cls in POLICIES.items() if not cls.recomputes):
        setup = parse_setup({"policy": name if name == "full" else f"{name}:budget={BUDGET}"})
        base, kept = run(setup, ids, 256)
        others = [run(setup, ids, block) for block in BLOCKS]
        what = f"{name}, blocks of {', '.join(map(str, BLOCKS))} against 256"
        yield Figure(what, max(gap(rows, base) for rows, _ in others), "nats", allowed)
        differing = max(int((kept != other).sum()) for _, other in others)
        yield Figure(f"{what}: lifetimes differing", differing, "", "≤ 0")

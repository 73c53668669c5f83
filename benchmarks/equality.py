"""Are the numbers the same? Gaps in log-probabilities at T = 256, beside the stock model's own gap."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks import stock
from benchmarks.material import loaded, text_ids
from kvviz.choices.setup import Setup, parse_setup
from kvviz.policies import POLICIES
from kvviz.run.replay import open_pass

TOKENS, BUDGET = 256, 64


def run(setup: Setup, ids: Tensor, block: int) -> tuple[Tensor, Tensor]:
    done = open_pass(loaded().model, setup, len(ids) // 2, None)
    rows = [done.feed(ids[start : start + block]) for start in range(0, len(ids), block)]
    return torch.cat(rows).log_softmax(-1), done.evicted_at()


def gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


def lines() -> Iterator[str]:
    ids = text_ids(TOKENS)
    forward = stock.forward(loaded().model, ids).log_softmax(-1)
    own = gap(stock.steps(loaded().model, ids).log_softmax(-1), forward)
    yield f"Equality on SmolLM2, T = {TOKENS}, largest gap over all log-probabilities"
    yield f"  stock model, stepping against one forward       {own:.1e}   (equal means ≤ {max(2e-4, 2 * own):.1e})"
    yield f"  full against the stock forward                  {gap(run(Setup(), ids, 256)[0], forward):.1e}"
    for name in (name for name, cls in POLICIES.items() if not cls.recomputes):
        setup = parse_setup({"policy": name if name == "full" else f"{name}:budget={BUDGET}"})
        base, kept = run(setup, ids, 256)
        for block in (1, 3, 8):
            rows, other = run(setup, ids, block)
            different = int((kept != other).sum())
            what = f"{name}, blocks of {block} against 256"
            yield f"  {what:46}  {gap(rows, base):.1e}   lifetimes differing {different}"

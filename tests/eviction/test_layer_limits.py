"""A policy that looks at positions alone may give every layer a limit of its own; each layer is asked for it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from kvviz.choices.setup import Setup, parse_setup
from kvviz.choices.storage import Int4
from kvviz.memory import Group, Shape
from kvviz.memory.account import account
from kvviz.memory.retention import ask_for
from kvviz.policies import Moment, Policy, View
from kvviz.policies.base import top
from kvviz.run.engine import Pass
from kvviz.run.replay import replay
from tests.tiny import some_ids, tiny

TOKENS = 20


@dataclass(frozen=True)
class ByLayer(Policy):
    """Layers keep 4, 8 and 8 of the latest tokens, and after token 11 they keep 4, 8 and 6."""

    def limit(self, moment: Moment) -> int | None:
        late = (4, 8, 6) if moment.newest > 11 else (4, 8, 8)
        return late[moment.layer]

    def keep(self, view: View) -> Tensor:
        return view.positions > view.newest - view.limit


@dataclass(frozen=True)
class ByLayerAndHead(ByLayer):
    """The same limits, and odd heads keep the oldest tokens instead of the latest, the newest always."""

    differs = True

    def keep(self, view: View) -> Tensor:
        worth = torch.where(view.head % 2 == 1, -view.positions, view.positions)
        return top(worth.masked_fill(view.positions == view.newest, TOKENS), view.limit)


@pytest.mark.parametrize("policy", [ByLayer(), ByLayerAndHead()], ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("block", [1, 3, 256])
def test_every_layer_keeps_its_own_number(policy: Policy, block: int) -> None:
    """Known fault 14: layers of different length get one shared mask."""
    trace = replay(tiny("llama"), some_ids(TOKENS).tolist(), Setup(policy), block=block)
    for step in range(TOKENS):
        limits = [4, 8, 6] if step > 11 else [4, 8, 8]
        assert trace.entries()[:, 0, step].tolist() == [min(step + 1, limit) for limit in limits]
    assert trace.bytes_at()[-1] == trace.cache_bytes


@pytest.mark.parametrize("policy", [ByLayer(), ByLayerAndHead()], ids=lambda policy: type(policy).__name__)
def test_blocks_change_nothing_where_groups_of_layers_part(policy: Policy) -> None:
    ids, setup = some_ids(TOKENS), Setup(policy, storage=Int4(2, 4))
    results = []
    for block in (1, 3, 256):
        done = Pass(tiny("llama"), setup, prompt_tokens=10)
        logits = torch.cat([done.feed(ids[start : start + block]) for start in range(0, TOKENS, block)])
        results.append((logits.log_softmax(-1), done.evicted_at(), *(done.quantised_at() or ())))
    for logits, *steps in results[1:]:
        assert (logits - results[0][0]).abs().max() < 1e-9
        assert all(torch.equal(mine, first) for mine, first in zip(steps, results[0][1:], strict=True))


def test_each_layer_sees_what_a_window_of_its_own_size_shows() -> None:
    ids = some_ids(11)  # before the limits change
    mine = Pass(tiny("llama"), Setup(ByLayer()), prompt_tokens=5).feed(ids)
    layered = parse_setup({"policy": "full", "pattern": "layered:windows=4/8/8"})
    assert (mine - Pass(tiny("llama"), layered, prompt_tokens=5).feed(ids)).abs().max() < 1e-9


def test_the_memory_formula_asks_every_layer() -> None:
    shape = Shape("three layers", (Group("full", (0, 1, 2), 2, 8, 8),), query_heads=4, head_width=8, dtype="float64")
    held = account(shape, ask_for(ByLayer(), shape, tokens=TOKENS)).bytes
    trace = replay(tiny("llama"), some_ids(TOKENS).tolist(), Setup(ByLayer()))
    assert held == trace.cache_bytes == (4 + 8 + 6) * 2 * 16 * 8

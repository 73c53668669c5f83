"""KeyDiff and LagKV against naive loops over the stock model's own cache, and by hand on a few entries."""

from __future__ import annotations

import math
import statistics

import pytest
import torch

from kvviz.choices.setup import Setup, parse_setup
from kvviz.policies.base import View
from kvviz.policies.keydiff import Keydiff
from kvviz.policies.lagkv import Lagkv
from kvviz.run.replay import replay
from tests.analysis.exactness.stock_runs import double, stock_read
from tests.tiny import some_ids, tiny

TOKENS, PROMPT = 40, 31


def view_of(keys: list[list[float]], values: list[list[float]] | None = None, limit: int = 3) -> View:
    """One head whose slots hold these keys and values, (K, D)."""
    count = len(keys)
    numbers = {"key": torch.tensor(keys).T[None], "value": torch.tensor(values or keys).T[None]}
    places = torch.arange(count)[None]
    return View(places, count - 1, torch.tensor([[0]]), torch.tensor([[0]]), 1, count, limit, numbers)


def entries(name: str, ids: torch.Tensor) -> list[tuple[list, list]]:
    """Keys and values of the prompt by layer, head by head, as lists."""
    _, cache = stock_read(double(name), ids[:PROMPT])
    return [(layer.keys[0].tolist(), layer.values[0].tolist()) for layer in cache.layers]


def cosine(one: list[float], other: list[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / math.sqrt(sum(a * a for a in one)) / math.sqrt(sum(b * b for b in other))


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
@pytest.mark.parametrize("block", [1, 7, 256])
def test_keydiff_keeps_the_keys_least_like_the_mean_direction(name: str, block: int) -> None:
    ids, budget = some_ids(TOKENS), 9
    trace = replay(tiny(name), ids.tolist(), Setup(Keydiff(budget)), prompt_tokens=PROMPT, block=block)
    for layer, (keys, _) in enumerate(entries(name, ids)):
        for head, own in enumerate(keys):
            lengths = [math.sqrt(sum(x * x for x in key)) for key in own]
            anchor = [
                sum(key[d] / length for key, length in zip(own, lengths, strict=True)) / PROMPT
                for d in range(len(own[0]))
            ]
            others = sorted(range(PROMPT - 1), key=lambda j: cosine(own[j], anchor))[: budget - 1]
            assert trace.kept(layer, head, PROMPT - 1).tolist() == sorted([*others, PROMPT - 1])
            assert trace.kept(layer, head, TOKENS - 1).tolist() == sorted([*others, *range(PROMPT - 1, TOKENS)])


def test_keydiff_by_hand() -> None:
    """Four keys point one way, one the other: that one stays, and the newest."""
    keys = [[1.0, 0.0], [2.0, 0.1], [-1.0, 0.2], [1.0, 0.1], [3.0, 0.0]]
    assert Keydiff(2).keep(view_of(keys, limit=2)).tolist() == [[False, False, True, False, True]]


def naive_ranks(own: list[list[float]], other: list[list[float]], lag: int, sinks: int) -> dict[int, float]:
    """The rank of every entry that can leave, by its position."""
    whole, found = (len(own) - sinks) // lag, {}
    for part in range(whole - 1):
        start = sinks + part * lag
        means = [0.0] * lag
        for numbers in (own, other):
            spreads = []
            for j in range(start, start + lag):
                scaled = []
                for channel in range(len(numbers[0])):
                    following = [numbers[i][channel] for i in range(start + lag, start + 2 * lag)]
                    low, high = min(following), max(following)
                    scaled.append((numbers[j][channel] - low) / (high - low))
                spreads.append(statistics.stdev(scaled))
            total = sum(math.exp(x) for x in spreads)
            means = [mean + math.exp(x) / total / 2 for mean, x in zip(means, spreads, strict=True)]
        order = sorted(range(lag), key=lambda j: means[j])
        found |= {start + j: order.index(j) / lag for j in range(lag)}
    return found


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
@pytest.mark.parametrize("block", [1, 7, 256])
def test_lagkv_keeps_the_best_ranked_of_each_partition(name: str, block: int) -> None:
    ids, budget, policy = some_ids(TOKENS), 20, Lagkv(20, lag=5, sinks=3)
    trace = replay(tiny(name), ids.tolist(), Setup(policy), prompt_tokens=PROMPT, block=block)
    # 3 sinks, five partitions of five, three more tokens: the last partition and those three stay
    assert (PROMPT - 3) // 5 == 5
    for layer, (keys, values) in enumerate(entries(name, ids)):
        for head in range(len(keys)):
            ranks = naive_ranks(keys[head], values[head], 5, 3)
            assert sorted(ranks) == list(range(3, 23))
            always = [0, 1, 2, *range(23, PROMPT)]
            best = sorted(ranks, key=lambda j: (ranks[j], j), reverse=True)[: budget - len(always)]
            assert trace.kept(layer, head, PROMPT - 1).tolist() == sorted([*always, *best])


@pytest.mark.parametrize(
    ("budget", "lag", "sinks", "kept"),
    [
        (5, 3, 2, [0, 1, 5, 6, 7]),  # two whole partitions: sinks and the end exceed the budget, the latest stay
        (4, 8, 1, [0, 5, 6, 7]),  # less than two partitions: sinks and the latest
        (2, 8, 4, [3, 7]),  # more sinks than room: the newest, and the later of the others
        (3, 2, 0, [5, 6, 7]),
    ],
)
def test_lagkv_meets_a_small_budget_exactly(budget: int, lag: int, sinks: int, kept: list[int]) -> None:
    keys = torch.randn(8, 3, generator=torch.Generator().manual_seed(1)).tolist()
    found = Lagkv(budget, lag=lag, sinks=sinks).keep(view_of(keys, limit=budget))
    assert found[0].nonzero()[:, 0].tolist() == kept


def test_a_budget_that_leaves_nothing_to_rank_is_said() -> None:
    assert "fill the budget of 64 here" in Lagkv(64, lag=32).notes(256, 128)[0]
    assert Lagkv(64, lag=8).notes(256, 128) == []
    assert "nothing is dropped" in Lagkv(200, lag=32).notes(256, 128)[0]


def test_a_channel_that_never_changes_divides_by_nothing() -> None:
    keys = [[float(j), 1.0] for j in range(9)]
    found = Lagkv(5, lag=2, sinks=1).keep(view_of(keys, limit=5))
    assert int(found.sum()) == 5 and bool(found[0, 0]) and bool(found[0, 8])


@pytest.mark.parametrize("cls", [Keydiff, Lagkv])
def test_they_read_no_attention_and_let_go_of_what_they_measured(cls: type) -> None:
    assert not cls.reads_attention()
    setup = parse_setup({"policy": f"{cls.name()}:budget=12"})
    trace = replay(tiny("mistral"), some_ids(TOKENS).tolist(), setup, prompt_tokens=PROMPT, block=8)
    assert trace.tokens == TOKENS

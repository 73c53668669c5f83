"""What a policy declares is carried beside the slots, whatever leaves in between and however the blocks are cut."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from kvviz.choices.setup import Setup
from kvviz.eviction.by_attention import AttentionEviction
from kvviz.eviction.by_entry import EntryEviction
from kvviz.eviction.opening import open_eviction
from kvviz.eviction.schedule import RunContext
from kvviz.policies import POLICIES, Policy, Scored, View
from kvviz.policies.base import PromptEnd
from kvviz.run.engine import Pass
from kvviz.run.replay import replay
from tests.tiny import VOCABULARY, tiny

TOKENS, BUDGET = 24, 6
# no token twice: equal ones have equal value norms in the first layer, and rounding would choose between them
DISTINCT = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(0))[:TOKENS]


@dataclass(frozen=True)
class LargeValues(Scored):
    """At every token the entries with the longest values stay; no attention is read."""

    needs = ("value_norm",)
    budget: int = BUDGET

    def __post_init__(self) -> None:
        """No knobs to check."""

    def score(self, view: View) -> Tensor:
        return view.statistics["value_norm"].masked_fill(view.positions == view.newest, math.inf)


@dataclass(frozen=True)
class WeightedValues(LargeValues):
    """The same with the attention received, so that both kinds of statistics travel together."""

    needs = ("value_norm", "received")

    def score(self, view: View) -> Tensor:
        worth = view.statistics["value_norm"] * view.statistics["received"]
        return worth.masked_fill(view.positions == view.newest, math.inf)


def kept_by_hand(norms: Tensor) -> list[list[int]]:
    """One head, token by token: the newcomer enters, then of the others the shortest value leaves."""
    held: list[int] = []
    steps = []
    for token in range(len(norms)):
        held.append(token)
        if len(held) > BUDGET:
            held.remove(min(held[:-1], key=lambda j: (float(norms[j]), j)))
        steps.append(list(held))
    return steps


@pytest.mark.parametrize("block", [1, 5, 256])
def test_value_norms_are_those_of_the_entries_as_they_came(block: int) -> None:
    trace = replay(tiny("llama"), DISTINCT.tolist(), Setup(LargeValues()), block=block, measure=True)
    assert trace.value_norm is not None
    for layer in range(trace.layers):
        for head in range(trace.kv_heads):
            mine = [trace.kept(layer, head, step).tolist() for step in range(TOKENS)]
            assert mine == kept_by_hand(torch.from_numpy(trace.value_norm[layer, head].copy()))


@pytest.mark.parametrize("model_name", ["llama", "mistral", "gemma3"])
@pytest.mark.parametrize("policy", [LargeValues(), WeightedValues()], ids=lambda policy: type(policy).__name__)
def test_blocks_change_nothing(model_name: str, policy: Policy) -> None:
    ids, results = DISTINCT, []
    for block in (1, 5, 256):
        done = Pass(tiny(model_name), Setup(policy), prompt_tokens=12)
        logits = torch.cat([done.feed(ids[start : start + block]) for start in range(0, TOKENS, block)])
        results.append((logits.log_softmax(-1), done.evicted_at()))
    for logits, evicted_at in results[1:]:
        assert (logits - results[0][0]).abs().max() < 1e-9
        assert torch.equal(evicted_at, results[0][1])


def test_the_row_loop_is_paid_for_by_policies_that_read_attention_alone() -> None:
    context = RunContext(1, 1, 4, torch.device("cpu"))
    for cls in POLICIES.values():
        kind = AttentionEviction if {"received", "rows"} & set(cls.needs) else EntryEviction
        assert type(open_eviction(cls(), [None], context)) is kind
    assert type(open_eviction(LargeValues(), [None], context)) is EntryEviction
    assert type(open_eviction(WeightedValues(), [None], context)) is AttentionEviction


def test_a_statistic_that_nobody_measures_is_refused() -> None:
    @dataclass(frozen=True)
    class Curious(LargeValues):
        needs = ("colour",)

    with pytest.raises(TypeError, match=r"needs .*colour.*, which is not measured"):
        Pass(tiny("llama"), Setup(Curious()), prompt_tokens=1)


def test_a_policy_that_reads_attention_must_score_its_slots() -> None:
    @dataclass(frozen=True)
    class Unscored(Policy):
        needs = ("received",)

    with pytest.raises(TypeError, match="must be a Scored policy"):
        Pass(tiny("llama"), Setup(Unscored()), prompt_tokens=1)


def test_norms_do_not_tie_in_bfloat16() -> None:
    """Known trap: lengths taken in bfloat16 have 8 bits and tie; they are taken in float32."""
    from kvviz.eviction.statistics import length

    states = torch.ones(1, 64, 16, dtype=torch.bfloat16)
    states[0, :, 0] = torch.linspace(1, 1.5, 64).to(torch.bfloat16)
    assert length(states).dtype == torch.float32
    assert len(length(states).unique()) == len(states[0, :, 0].unique())


def test_prompt_end_policies_say_so() -> None:
    assert {name for name, cls in POLICIES.items() if cls.acts_once} == {
        "snapkv",
        "pyramidkv",
        "knorm",
        "keydiff",
        "lagkv",
    }
    assert all(issubclass(cls, PromptEnd) == cls.acts_once for cls in POLICIES.values())
    assert replace(LargeValues(), budget=3).size == 3

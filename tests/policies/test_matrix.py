"""What every policy must do, asked of each one that exists without being told about it."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import torch

from kvviz.engine import Pass
from kvviz.experiment import Setup
from kvviz.policies import POLICIES, Policy
from tests.tiny import NAMES, some_ids, tiny

TOKENS, BUDGET = 36, 10


def sized(name: str, budget: int) -> Policy:
    """The policy with a small budget, its other knobs small enough to fit."""
    cls = POLICIES[name]
    small = {"budget": budget, "sinks": 2, "recent": 3, "observe": 4}
    return cls(**{f.name: small[f.name] for f in dataclasses.fields(cls) if f.name in small})


def lifetimes(model_name: str, policy: Policy, block: int) -> torch.Tensor:
    done = Pass(tiny(model_name), Setup(policy), prompt_tokens=TOKENS // 2)
    ids = some_ids(TOKENS)
    for start in range(0, TOKENS, block):
        done.feed(ids[start : start + block])
    for layer in done.cache.layers:
        assert layer.keys.shape[-2] == layer.values.shape[-2]
    return done.evicted_at()


@pytest.mark.parametrize("name", [n for n in POLICIES if n != "full"])
@pytest.mark.parametrize("model_name", NAMES)
def test_exactly_the_budget_survives_in_every_head(model_name: str, name: str) -> None:
    evicted_at = lifetimes(model_name, sized(name, BUDGET), 8)
    windows = Pass(tiny(model_name), Setup(), prompt_tokens=1).windows
    for step in range(TOKENS):
        held = ((torch.arange(TOKENS) <= step) & (evicted_at > step)).sum(-1)
        for layer, window in enumerate(windows):
            assert held[layer].unique().tolist() == [min(BUDGET, step + 1, window or TOKENS)]
        assert (evicted_at[..., step] > step).all()  # the newest token sees itself


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_budget_not_below_the_text_evicts_nothing(name: str) -> None:
    assert (lifetimes("llama", sized(name, TOKENS), 8) == TOKENS).all()
    if name != "full":
        assert any("exactly the full cache" in note for note in sized(name, TOKENS).notes(TOKENS))
        assert sized(name, TOKENS - 1).notes(TOKENS) == []


@pytest.mark.parametrize("name", [n for n in POLICIES if n != "full"])
def test_a_budget_of_one_is_the_token_itself(name: str) -> None:
    cls = POLICIES[name]
    policy = cls(**{f.name: 1 if f.name == "budget" else 0 for f in dataclasses.fields(cls)})
    evicted_at = lifetimes("llama", policy, 8)
    assert evicted_at[0, 0].tolist() == [*range(1, TOKENS), TOKENS]


@pytest.mark.parametrize("name", list(POLICIES))
def test_the_docstring_names_the_rule_and_the_source(name: str) -> None:
    text = inspect.getdoc(POLICIES[name]) or ""
    assert "Source:" in text and "S_t" in text

"""What every policy must do, asked of each one that exists without being told about it."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import replace

import pytest
import torch

from kvviz.choices.setup import Setup, parse_setup
from kvviz.policies import POLICIES, Policy
from kvviz.run.engine import Pass
from kvviz.run.replay import open_pass
from tests.tiny import NAMES, ROTARY, some_ids, tiny

TOKENS, BUDGET = 36, 10


def fits(model_name: str, words: dict[str, str]) -> bool:
    return words.get("positions") != "slot" or model_name in ROTARY


def sized(name: str, budget: int) -> Policy:
    """The policy with a small budget, its other knobs small enough to fit."""
    cls = POLICIES[name]
    small = {"budget": budget, "sinks": 2, "recent": 3, "observe": 4, "kernel": 3, "lag": 4}
    return cls(**{f.name: small[f.name] for f in dataclasses.fields(cls) if f.name in small})


def lifetimes(model_name: str, policy: Policy, block: int) -> torch.Tensor:
    done = open_pass(tiny(model_name), Setup(policy), TOKENS // 2, None)
    ids = some_ids(TOKENS)
    for start in range(0, TOKENS, block):
        done.feed(ids[start : start + block])
    return done.evicted_at()


# the first evicts by position, the second differently in every head, the third by attention, the last once
TELLING = ("streaming", "random", "h2o", "snapkv")
# all policies on one architecture, the telling ones on the others
PAIRS = [("llama", name) for name in POLICIES] + [(m, name) for m in NAMES if m != "llama" for name in TELLING]
WORDS = ({}, {"positions": "slot"}, {"softmax": "off_by_one"}, {"pattern": "sliding:window=5"})
# models with learned positions have no slots to number (that is refused, and tested as refused)
CASES = [(m, name, words) for m, name in PAIRS for words in (WORDS if m == "llama" else WORDS[:2]) if fits(m, words)]

# policies that act once add what comes after the prompt
EVERY_TOKEN = [name for name, cls in POLICIES.items() if name != "full" and not cls.acts_once]


@pytest.mark.parametrize(("model_name", "name"), [pair for pair in PAIRS if pair[1] in EVERY_TOKEN])
def test_exactly_the_budget_survives_in_every_head(model_name: str, name: str) -> None:
    """Known fault 24: the number of kept tokens is only near the budget."""
    evicted_at = lifetimes(model_name, sized(name, BUDGET), 8)
    # re-computation reads its window afresh, so no window of the model's own layers takes from it
    own = [None] * 3 if POLICIES[name].recomputes else Pass(tiny(model_name), Setup(), prompt_tokens=1).windows
    for step in range(TOKENS):
        held = ((torch.arange(TOKENS) <= step) & (evicted_at > step)).sum(-1)
        for layer, window in enumerate(own):
            assert held[layer].unique().tolist() == [min(BUDGET, step + 1, window or TOKENS)]
        assert (evicted_at[..., step] > step).all()  # the newest token sees itself


@pytest.mark.parametrize(("model_name", "name"), [pair for pair in PAIRS if POLICIES[pair[1]].acts_once])
def test_policies_of_the_prompt_keep_the_budget_at_its_end(model_name: str, name: str) -> None:
    evicted_at = lifetimes(model_name, sized(name, BUDGET), 8)
    windows = Pass(tiny(model_name), Setup(), prompt_tokens=1).windows
    end = TOKENS // 2 - 1
    held = ((torch.arange(TOKENS) <= end) & (evicted_at > end)).sum(-1)  # (L, H)
    assert (held == held[:, :1]).all()  # heads alike
    if not any(windows):
        assert held[:, 0].sum() == len(windows) * BUDGET
        assert (evicted_at[..., end + 1 :] == TOKENS).all()


@pytest.mark.parametrize(("model_name", "name", "words"), CASES)
def test_block_size_changes_nothing(model_name: str, name: str, words: dict[str, str]) -> None:
    """Known fault 40: a new release of the library breaks some of the policies, unnoticed."""
    setup, ids = replace(parse_setup(words), policy=sized(name, BUDGET)), some_ids(TOKENS)
    results = []
    for block in (1, 3, 256):
        done = open_pass(tiny(model_name), setup, TOKENS // 2, None)
        logits = torch.cat([done.feed(ids[start : start + block]) for start in range(0, TOKENS, block)])
        results.append((logits.log_softmax(-1), done.evicted_at(), done.cache_bytes))
    for logits, evicted_at, cache_bytes in results[1:]:
        assert (logits - results[0][0]).abs().max() < 1e-9
        assert torch.equal(evicted_at, results[0][1]) and cache_bytes == results[0][2]


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_budget_not_below_the_text_evicts_nothing(name: str) -> None:
    assert (lifetimes("llama", sized(name, TOKENS), 8) == TOKENS).all()
    if name != "full":
        assert any("exactly the full cache" in note for note in sized(name, TOKENS).notes(TOKENS, TOKENS))
        assert sized(name, TOKENS - 1).notes(TOKENS, TOKENS) == []


@pytest.mark.parametrize("name", [n for n in EVERY_TOKEN if n != "attention_window"])  # that one needs room to observe
def test_a_budget_of_one_is_the_token_itself(name: str) -> None:
    """Known fault 23: choosing none, or the last none, empties the cache or protects everything."""
    cls = POLICIES[name]
    small = {"budget": 1, "sinks": 0}
    policy = cls(**{f.name: small[f.name] for f in dataclasses.fields(cls) if f.name in small})
    evicted_at = lifetimes("llama", policy, 8)
    assert evicted_at[0, 0].tolist() == [*range(1, TOKENS), TOKENS]


@pytest.mark.parametrize("name", list(POLICIES))
def test_the_docstring_names_the_rule_and_the_source(name: str) -> None:
    text = inspect.getdoc(POLICIES[name]) or ""
    assert "Source:" in text and "S_" in text

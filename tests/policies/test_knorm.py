"""Knorm against a naive second computation from the stock model's own cache."""

from __future__ import annotations

import pytest
import torch

from kvviz.choices.setup import Setup, parse_setup
from kvviz.policies.knorm import Knorm
from kvviz.run.engine import Pass
from kvviz.run.replay import replay
from tests.tiny import some_ids, stock, tiny

TOKENS, PROMPT, BUDGET = 30, 18, 7


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
def test_the_smallest_keys_of_the_prompt_stay(name: str) -> None:
    """Sorted one by one in Python; every layer's prompt keys are those of the full cache."""
    ids = some_ids(TOKENS)
    trace = replay(tiny(name), ids.tolist(), Setup(Knorm(BUDGET)), prompt_tokens=PROMPT)
    with torch.inference_mode():
        cache = stock(name)(input_ids=ids[None, :PROMPT], use_cache=True).past_key_values
    for layer, entries in enumerate(cache.layers):
        for head, keys in enumerate(entries.keys[0]):
            norms = [float(key.square().sum()) for key in keys]
            others = sorted(range(PROMPT - 1), key=lambda j: norms[j])[: BUDGET - 1]
            assert trace.kept(layer, head, PROMPT - 1).tolist() == sorted([*others, PROMPT - 1])
            after = [*range(PROMPT, TOKENS)]
            assert trace.kept(layer, head, TOKENS - 1).tolist() == sorted([*others, PROMPT - 1, *after])


def test_the_prompts_last_token_still_sees_all_of_it() -> None:
    """Known fault 8: the prompt is evicted before it has attended, so its own logits change."""
    ids = some_ids(TOKENS)
    full = Pass(tiny("llama"), Setup(), prompt_tokens=PROMPT).feed(ids)
    mine = Pass(tiny("llama"), Setup(Knorm(BUDGET)), prompt_tokens=PROMPT).feed(ids)
    assert (full[:PROMPT] - mine[:PROMPT]).abs().max() < 1e-9
    assert (full[PROMPT:] - mine[PROMPT:]).abs().max() > 1e-3


def test_it_reads_no_attention() -> None:
    assert not Knorm.reads_attention()


def test_a_prompt_within_the_budget_is_kept_and_said() -> None:
    trace = replay(tiny("llama"), some_ids(8).tolist(), parse_setup({"policy": "knorm:budget=9"}), prompt_tokens=5)
    assert (trace.evicted_at == 8).all()
    assert any("prompt of 5 tokens is not longer than the budget of 9: nothing is dropped" in n for n in trace.notes)

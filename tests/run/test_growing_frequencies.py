"""Rotary frequencies that change with the length of the text: every block size computes what stepping computes."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, LlamaConfig, PreTrainedModel

from kvviz.choices.setup import Setup, parse_setup
from kvviz.models.rope import parts_by_length
from kvviz.run.engine import Pass
from tests.tiny import GQA, some_ids

TRAINED, TOKENS = 16, 40
LONG = {"long_factor": [4.0, 6.0, 8.0, 9.0], "short_factor": [1.0] * 4, "original_max_position_embeddings": TRAINED}
ROPES = {
    "dynamic": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4},
    "longrope": {"rope_type": "longrope", "factor": 4.0, "rope_theta": 1e4, **LONG},
}


@cache
def model_with(kind: str) -> PreTrainedModel:
    torch.manual_seed(7)
    longest = TRAINED if kind == "dynamic" else 4 * TRAINED  # a fixed scaling says how far it reaches
    config = LlamaConfig(**{**GQA, "max_position_embeddings": longest}, rope_parameters=dict(ROPES[kind]))
    model = AutoModelForCausalLM.from_config(config).double().eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        if "q_proj" in name or "k_proj" in name:
            parameter.mul_(6)
    return model


def stepped(model: PreTrainedModel, ids: torch.Tensor) -> torch.Tensor:
    """The stock model, one token at a time with its own cache."""
    past, rows = DynamicCache(config=model.config), []
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        for position, token in enumerate(ids):
            where = torch.tensor([[position]])
            rows.append(model(input_ids=token.view(1, 1), position_ids=where, cache=past, use_cache=True).logits[0])
    return torch.cat(rows).log_softmax(-1)


@pytest.mark.parametrize("kind", ROPES)
def test_every_block_size_computes_what_stepping_computes(kind: str) -> None:
    """The size of a block changed log-probabilities by up to 0.03 nats, and what was run before could too."""
    model, ids = model_with(kind), some_ids(TOKENS)
    expected = stepped(model, ids)
    for policy in ("full", "h2o:budget=12,recent=4"):
        results = []
        for block in (1, 7, 16, 17, 256):
            run = Pass(model, parse_setup({"policy": policy}), prompt_tokens=8)
            parts = [run.feed(ids[start : start + block]) for start in range(0, TOKENS, block)]
            results.append(torch.cat(parts).log_softmax(-1))
            if policy == "full":
                assert (results[-1] - expected).abs().max() < 2e-5  # frequencies and softmax are float32 in both
        assert all((result - results[0]).abs().max() < 1e-9 for result in results[1:])


@pytest.mark.parametrize("kind", ROPES)
def test_one_pass_of_the_stock_model_is_another_thing_and_that_is_said(kind: str) -> None:
    model, ids = model_with(kind), some_ids(TOKENS)
    with torch.inference_mode():
        at_once = model(input_ids=ids[None], use_cache=False).logits[0].log_softmax(-1)
    assert (at_once - stepped(model, ids)).abs().max() > 1e-3
    run = Pass(model, Setup(), prompt_tokens=8)
    run.feed(ids[:TRAINED])
    assert not any("frequencies" in note for note in run.notes())
    run.feed(ids[TRAINED:])
    assert any("rotary frequencies change with the length of the text" in note for note in run.notes())


def test_where_a_block_is_parted() -> None:
    assert parts_by_length([], 0, 256) == [256]
    assert parts_by_length([(16, False)], 0, 40) == [15, 1, 24]
    assert parts_by_length([(16, True)], 0, 19) == [15, 1, 1, 1, 1]
    assert parts_by_length([(16, False)], 20, 8) == [8]
    assert parts_by_length([(16, True)], 20, 3) == [1, 1, 1]

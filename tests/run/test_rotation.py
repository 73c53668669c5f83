"""How a layer rotates its keys is found by trying; what no known way explains is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, CohereConfig, LlamaConfig, PreTrainedModel, SmolLM3Config

from kvviz.choices.setup import parse_setup
from kvviz.run.engine import Pass
from kvviz.run.rotation import ropes_of
from tests.naive_slots import renumbered_logits
from tests.run.test_bytes_held import latent
from tests.tiny import GQA, ROTARY, some_ids, tiny

SLOT = {"policy": "streaming:budget=5,sinks=2", "positions": "slot"}


def model_of(config: Any) -> PreTrainedModel:
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(config).double().eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        if "q_proj" in name or "k_proj" in name:
            parameter.mul_(6)
    return model


@pytest.mark.parametrize("name", ROTARY)
def test_every_rotary_model_has_one_rope_a_layer(name: str) -> None:
    assert [rope.interleaved for rope in ropes_of(tiny(name))] == [False] * 3


def test_gemma3_keeps_one_set_of_frequencies_per_type_of_layer() -> None:
    ropes = ropes_of(tiny("gemma3"))
    assert torch.equal(ropes[0].inv_freq, ropes[2].inv_freq)
    assert not torch.equal(ropes[0].inv_freq, ropes[1].inv_freq)


def test_length_dependent_frequencies_are_refused() -> None:
    model = model_of(LlamaConfig(**GQA, rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}))
    with pytest.raises(ValueError, match="'dynamic' frequencies change"):
        ropes_of(model)


def test_layers_without_positions_stay_as_they_are() -> None:
    """SmolLM3 rotates in some layers only; rotating in all of them moved log-probabilities by 1.9 nats."""
    model = model_of(SmolLM3Config(**GQA, no_rope_layer_interval=2, pad_token_id=0))
    assert [len(rope.inv_freq) for rope in ropes_of(model)] == [4, 0, 4]
    ids = some_ids(16)
    mine = Pass(model, parse_setup(SLOT), prompt_tokens=8).feed(ids).log_softmax(-1)
    assert (mine - renumbered_logits(model, ids, 5, 2).log_softmax(-1)).abs().max() < 1e-6


def test_a_latent_rotates_its_last_channels() -> None:
    assert {(rope.start, len(rope.inv_freq)) for rope in ropes_of(latent())} == {(8, 2)}
    ids = some_ids(16)
    mine = Pass(latent(), parse_setup(SLOT), prompt_tokens=8).feed(ids).log_softmax(-1)
    assert (mine - renumbered_logits(latent(), ids, 5, 2).log_softmax(-1)).abs().max() < 1e-6


def test_channels_may_be_paired_with_their_neighbours() -> None:
    model = model_of(CohereConfig(**{k: v for k, v in GQA.items() if k != "head_dim"}))
    assert all(rope.interleaved for rope in ropes_of(model))
    ids = some_ids(16)
    mine = Pass(model, parse_setup(SLOT), prompt_tokens=8).feed(ids).log_softmax(-1)
    assert (mine - renumbered_logits(model, ids, 5, 2).log_softmax(-1)).abs().max() < 1e-6

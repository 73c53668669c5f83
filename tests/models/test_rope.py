from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from kvviz.models.rope import Rope, ropes_of
from tests.tiny import ROTARY, tiny


def test_a_quarter_turn_by_hand() -> None:
    rope = Rope(torch.tensor([torch.pi / 2], dtype=torch.float64))
    moved = rope.moved(torch.tensor([1.0, 0.0], dtype=torch.float64), torch.tensor(1))
    assert torch.allclose(moved, torch.tensor([0.0, 1.0], dtype=torch.float64), atol=1e-15)


def test_moving_composes_and_undoes_itself() -> None:
    rope = ropes_of(tiny("llama"))[0]
    keys = torch.randn(5, 8, dtype=torch.float64)
    there = rope.moved(rope.moved(keys, torch.tensor([3] * 5)), torch.tensor([4] * 5))
    assert torch.allclose(there, rope.moved(keys, torch.tensor([7] * 5)), atol=1e-12)
    assert torch.allclose(rope.moved(there, torch.tensor([-7] * 5)), keys, atol=1e-12)


def test_only_the_rotary_part_moves() -> None:
    rope = ropes_of(tiny("gpt_neox"))[0]
    assert len(rope.inv_freq) == 2  # head size 8, half of it rotary
    keys = torch.randn(1, 8, dtype=torch.float64)
    moved = rope.moved(keys, torch.tensor([5]))
    assert torch.equal(moved[:, 4:], keys[:, 4:]) and not torch.equal(moved[:, :4], keys[:, :4])


@pytest.mark.parametrize("name", ROTARY)
def test_every_rotary_model_has_one_rope_a_layer(name: str) -> None:
    assert len(ropes_of(tiny(name))) == 3


def test_gemma3_keeps_one_set_of_frequencies_per_type_of_layer() -> None:
    ropes = ropes_of(tiny("gemma3"))
    assert torch.equal(ropes[0].inv_freq, ropes[2].inv_freq)
    assert not torch.equal(ropes[0].inv_freq, ropes[1].inv_freq)


def test_length_dependent_frequencies_are_refused() -> None:
    config = LlamaConfig(
        vocab_size=16,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0},
    )
    with pytest.raises(ValueError, match="'dynamic' frequencies change"):
        ropes_of(AutoModelForCausalLM.from_config(config))


def test_interleaved_channels_are_refused() -> None:
    from transformers import CohereConfig

    config = CohereConfig(
        vocab_size=16, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    with pytest.raises(ValueError, match="pairs the rotary channels"):
        ropes_of(AutoModelForCausalLM.from_config(config))

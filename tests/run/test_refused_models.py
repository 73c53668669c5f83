"""A model that would ignore a policy is refused by name; a wrong answer that looks real is the worst there is."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    DeepseekV32Config,
    FalconConfig,
    GPTNeoConfig,
    MptConfig,
    PretrainedConfig,
)

from kvviz.cache.slots import native_windows
from kvviz.choices.setup import parse_setup
from kvviz.run.engine import Pass

SMALL = {"vocab_size": 64, "hidden_size": 32}
CONFIGS = (
    FalconConfig(**SMALL, num_hidden_layers=2, num_attention_heads=4),
    BloomConfig(**SMALL, n_layer=2, n_head=4),
    MptConfig(vocab_size=64, d_model=32, n_layers=2, n_heads=4),
    GPTNeoConfig(**SMALL, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=8),
)


@pytest.mark.parametrize("policy", ["full", "window:budget=4", "h2o:budget=4"])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.model_type)
def test_models_that_do_not_use_the_attention_interface_are_refused(config: PretrainedConfig, policy: str) -> None:
    model = AutoModelForCausalLM.from_config(config).double().eval()
    run = Pass(model, parse_setup({"policy": policy}), prompt_tokens=4)
    with pytest.raises(ValueError, match=rf"{config.model_type} models are refused: 0 of 2 layers use the attention"):
        run.feed(torch.arange(8))


def test_a_layer_with_an_indexer_of_its_own_is_refused() -> None:
    """It chooses keys by a rule of its own; the refusal was a sentence about the inside of a cache."""
    with pytest.raises(ValueError, match="Layer 0 of this deepseek_v32 model is a DynamicIndexedLayer, not plain"):
        native_windows(DeepseekV32Config(**SMALL, num_hidden_layers=2))

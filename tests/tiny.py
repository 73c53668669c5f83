"""Tiny random models of six architectures, in float64 so that equality can be asked for to 1e-9.

Query and key weights are scaled up: with the usual initialisation attention is flat, and a policy could keep the
wrong tokens without any visible effect.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedModel,
    Qwen3Config,
)

VOCABULARY = 64
COMMON = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 256}
GQA = {**COMMON, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
CONFIGS = {
    "llama": LlamaConfig(**GQA),
    "qwen3": Qwen3Config(**GQA),
    "mistral": MistralConfig(**GQA, sliding_window=12),
    "gemma3": Gemma3TextConfig(
        **GQA,
        sliding_window=9,
        query_pre_attn_scalar=8,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "gpt2": GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=3, n_head=4, n_positions=256),
    "gpt_neox": GPTNeoXConfig(**COMMON, num_hidden_layers=3, num_attention_heads=4, rotary_pct=0.5),
}
NAMES = tuple(CONFIGS)
ROTARY = tuple(name for name in NAMES if name != "gpt2")


@cache
@torch.inference_mode(False)  # the first caller may be inside it, and such weights could take part in no gradient
def tiny(name: str) -> PreTrainedModel:
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(deepcopy(CONFIGS[name])).double().eval().requires_grad_(False)
    for parameter_name, parameter in model.named_parameters():
        if any(part in parameter_name for part in ("q_proj", "k_proj", "c_attn", "query_key_value")):
            parameter.mul_(6)
        if "q_norm" in parameter_name:
            parameter.add_(2)
    return model


def one_layer() -> PreTrainedModel:
    """A Llama of one layer and one head."""
    config = deepcopy(CONFIGS["llama"])
    config.num_hidden_layers, config.num_key_value_heads, config.num_attention_heads = 1, 1, 1
    torch.manual_seed(3)
    return AutoModelForCausalLM.from_config(config).double().eval().requires_grad_(False)


def some_ids(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed))


@cache
@torch.inference_mode(False)
def stock(name: str) -> PreTrainedModel:
    """The same weights with the library's own eager attention."""
    model = AutoModelForCausalLM.from_config(deepcopy(CONFIGS[name])).double().eval().requires_grad_(False)
    model.load_state_dict(tiny(name).state_dict())
    model.set_attn_implementation("eager")
    return model

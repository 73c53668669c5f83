"""Configs of real models, cut to the fields that decide, in the spelling their owners use."""

from __future__ import annotations

import json
from typing import Any

from kvviz.memory import Ask, account, read_config
from kvviz.memory.shape import Shape


def shape(**fields: Any) -> Shape:
    return read_config(json.dumps(fields))


def gqa(layers: int, kv_heads: int, width: int, **more: Any) -> Shape:
    """A plain model with as many query heads as make the ratio 4, and 16-bit numbers."""
    heads = 4 * kv_heads
    fields = {"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads}
    return shape(**fields, head_dim=width, dtype="bfloat16", **more)


def mha(layers: int, heads: int, width: int) -> Shape:
    return shape(num_hidden_layers=layers, num_attention_heads=heads, head_dim=width, dtype="float16")


def mla(layers: int, **more: Any) -> Shape:
    fields = {"num_hidden_layers": layers, "num_attention_heads": 64, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    return shape(**fields, hidden_size=6144, dtype="bfloat16", **more)


def bytes_at(model: Shape, tokens: int, **more: Any) -> int:
    return account(model, Ask(tokens, **more)).bytes


def repeat(pattern: str, layers: int) -> list[str]:
    """Layer types by letters: F full, S sliding, L linear."""
    words = {"F": "full_attention", "S": "sliding_attention", "L": "linear_attention"}
    return [words[pattern[layer % len(pattern)]] for layer in range(layers)]


GEMMA_4 = {"sliding_window": 512, "head_dim": 256, "global_head_dim": 512, "dtype": "bfloat16"}
E4B = {"num_hidden_layers": 42, "num_attention_heads": 8, "num_key_value_heads": 2, "num_kv_shared_layers": 18}
E4B |= {"layer_types": repeat("SSSSSF", 42), "attention_k_eq_v": False, "num_global_key_value_heads": None, **GEMMA_4}
E2B = {"num_hidden_layers": 35, "num_attention_heads": 8, "num_key_value_heads": 1, "num_kv_shared_layers": 20}
E2B |= {"layer_types": repeat("SSSSF", 35), "attention_k_eq_v": False, **GEMMA_4}
GEMMA_4_31B = {"num_hidden_layers": 60, "num_attention_heads": 32, "num_key_value_heads": 16}
GEMMA_4_31B |= {
    "layer_types": repeat("SSSSSF", 60),
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 4,
    **GEMMA_4,
}
LINEAR = {"linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_key_head_dim": 128}
LINEAR |= {"linear_value_head_dim": 128, "linear_conv_kernel_dim": 4}
FALCON = {"n_layer": 32, "n_head": 71, "hidden_size": 4544, "num_kv_heads": 71, "multi_query": True}
FALCON |= {"new_decoder_architecture": False, "torch_dtype": "bfloat16"}
GPT2 = {"n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024, "model_type": "gpt2"}
DEEPSEEK_V4 = {"model_type": "deepseek_v4", "num_hidden_layers": 43, "num_attention_heads": 64, "head_dim": 512}
DEEPSEEK_V4 |= {"num_key_value_heads": 1, "q_lora_rank": 1024, "qk_rope_head_dim": 64, "compress_ratios": [0, 4, 128]}
LLAMA_4 = {
    "model_type": "llama4",
    "text_config": {
        "model_type": "llama4_text",
        "attention_chunk_size": 8192,
        "head_dim": 128,
        "hidden_size": 5120,
        "num_attention_heads": 40,
        "num_hidden_layers": 48,
        "num_key_value_heads": 8,
    },
    "torch_dtype": "bfloat16",
}

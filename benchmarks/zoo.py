"""Tiny random models of every causal architecture that the pinned transformers knows, built from its own config."""

from __future__ import annotations

from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

VOCABULARY = 96
# by field, whatever the architecture; a field that a config does not have, or leaves empty, stays as it is
SMALL: dict[str, Any] = {
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input", "n_vocab"), VOCABULARY),
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "n_embed", "dim", "embed_dim", "embedding_size"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers"), 4),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("decoder_attention_heads", "linear_num_value_heads", "linear_num_key_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "multi_query_group_num", "num_kv_heads", "kv_n_heads"), 2),
    **dict.fromkeys(("head_dim", "global_head_dim", "attention_head_dim", "d_kv", "kv_channels", "dim_head"), 8),
    **dict.fromkeys(("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank", "q_lora_rank"), 8),
    **dict.fromkeys(
        ("linear_key_head_dim", "linear_value_head_dim", "index_head_dim", "hidden_size_per_layer_input"), 8
    ),
    **dict.fromkeys(
        ("intermediate_size", "ffn_dim", "ffn_hidden_size", "d_ff", "n_inner", "d_inner", "dff", "dim_ff"), 48
    ),
    **dict.fromkeys(("decoder_ffn_dim", "encoder_ffn_dim", "moe_intermediate_size", "expert_ffn_hidden_size"), 48),
    **dict.fromkeys(("shared_expert_intermediate_size", "intermediate_size_mlp", "shared_intermediate_size"), 48),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k", "top_k_experts", "num_experts_per_token"), 2),
    **dict.fromkeys(
        ("n_group", "topk_group", "n_shared_experts", "moe_num_shared_experts", "first_k_dense_replace"), 1
    ),
    "sliding_window": 12,
    **dict.fromkeys(("index_topk", "attention_chunk_size"), 8),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"), 512),
    **dict.fromkeys(("mamba_n_heads", "mamba_num_heads", "mamba_n_groups", "n_mamba_heads"), 4),
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 1),
}
# what the fields above leave inconsistent in one architecture
MLA = {"num_key_value_heads": 4}
CHANGES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("axk1", "axk2", "deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite"), MLA),
    **dict.fromkeys(("glm_moe_dsa", "longcat_flash", "minicpm3", "sarvam_mla", "youtu", "dots3_note_text"), MLA),
    **{name: {"rotary_dim": 4} for name in ("codegen", "gptj")},
    **{name: {"head_dim": 8} for name in ("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral", "nemotron")},
    "bamba": {"attn_layer_indices": [1, 3]},
    "deepseek_v2": MLA | {"n_group": 1, "topk_group": 1, "topk_method": "greedy", "num_experts_per_tok": 2},
    "dots1": {"num_key_value_heads": 4, "n_routed_experts": 4, "head_dim": 8, "first_k_dense_replace": 4},
    "gemma3n_text": {"num_hidden_layers": 10, "num_kv_shared_layers": 2},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "nemotron": {"head_dim": 8, "num_key_value_heads": 2},
    "reformer": {"is_decoder": True, "axial_pos_embds": False},
    "zaya": {"num_experts_per_tok": 1},
}


def model_types() -> list[str]:
    """Every architecture with a causal language model."""
    return list(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def tiny_config(model_type: str, **changes: Any) -> PretrainedConfig:
    """The stock config of an architecture, shrunk; ``changes`` go over what was shrunk."""
    return shrunk(CONFIG_MAPPING[model_type], CHANGES.get(model_type, {}) | changes)


def shrunk(kind: type[PretrainedConfig], changes: dict[str, Any]) -> PretrainedConfig:
    stock = kind().to_dict()
    values = {name: small for name, small in SMALL.items() if isinstance(stock.get(name), (int, float))}
    for name in kind.sub_configs:
        if isinstance(stock.get(name), dict) and stock[name].get("model_type") in CONFIG_MAPPING:
            part = CONFIG_MAPPING[stock[name]["model_type"]]
            values[name] = shrunk(part, changes if name == "text_config" else {})
    return kind(**values | changes)


def tiny_model(config: PretrainedConfig, dtype: torch.dtype = torch.float64) -> PreTrainedModel:
    """Random weights, the query and key weights scaled up: with flat attention nothing would show."""
    torch.manual_seed(7)
    model = (
        AutoModelForCausalLM.from_config(config, experts_implementation="eager").to(dtype).eval().requires_grad_(False)
    )
    for name, parameter in model.named_parameters():
        if any(part in name for part in ("q_proj", "k_proj", "c_attn", "query_key_value", "qkv")):
            parameter.mul_(6)
    return model

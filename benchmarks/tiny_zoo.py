"""Every causal family of the installed transformers, built tiny from its config class; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

FAMILIES: list[str] = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
WINDOW, HEADS = 8, 4
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "swa_num_key_value_heads", "num_global_key_value_heads")
TOKEN_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LAYERS = 12  # a multiple of the usual patterns: every 2nd, 3rd, 4th or 6th layer
# where a forward's output has its cache, as families call it
CACHES = ("cache", "past_key_values", "cache_params", "state", "mems", "past_buckets_states")
DECODER = {"is_decoder": True}
WINDOWED = ("starcoder2", "phi3", "phimoe", "ministral", "ministral3", "doge", "hyperclovax")
# what else a family needs to be built tiny, or to write at all
MORE: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("bert", "bert-generation", "camembert", "data2vec-text", "electra", "ernie"), DECODER),
    **dict.fromkeys(("megatron-bert", "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer"), DECODER),
    **dict.fromkeys(("xlm-roberta", "xlm-roberta-xl"), DECODER),
    "xmod": {**DECODER, "default_language": "en_XX"},
    "big_bird": {**DECODER, "attention_type": "original_full"},
    "reformer": {**DECODER, "axial_pos_embds": False},
    "codegen": {"rotary_dim": 8},
    "gptj": {"rotary_dim": 8},
    "gpt_neo": {"attention_types": [[["global", "local"], LAYERS // 2]]},
    "dots1": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "helium": {"head_dim": 16},
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16},
    "ministral": {"head_dim": 16},
    "nemotron": {"head_dim": 16, "num_key_value_heads": 2},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "mamba2": {"num_heads": 4, "head_dim": 32, "n_groups": 1},
    "blenderbot": {"encoder_layers": LAYERS},
    "lfm2": {"layer_types": ["conv", "full_attention"] * (LAYERS // 2)},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * (LAYERS // 2)},
    "gemma3n_text": {"num_kv_shared_layers": 5},
    "qwen2": {"use_sliding_window": True, "max_window_layers": 5, "sliding_window": WINDOW},
    "bamba": {"attn_layer_indices": [2, 5]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * (LAYERS // 2)},
    "xlstm": {"num_blocks": LAYERS},
}
# sizes by name, in whichever part of a config they stand
SIZES: dict[str, int] = {
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"), LAYERS),
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim", "emb_dim", "embedding_size", "embedding_dim"), 64),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "decoder_attention_heads", "attention_heads"), HEADS),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "decoder_ffn_dim", "moe_intermediate_size", "n_inner"), 32),
    **dict.fromkeys(("sliding_window", "attention_window_size", "window_size", "attention_chunk_size"), WINDOW),
    **dict.fromkeys(("vocab_size", "decoder_vocab_size", "vocab_size_per_layer_input"), 160),
    **dict.fromkeys(("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "top_k_experts"), 2),
    **dict.fromkeys(("n_group", "topk_group", "num_expert_group"), 1),
    "hidden_size_per_layer_input": 16,
}
SLIDING = {"use_sliding_window": True, "sliding_window": WINDOW}
# the same families with a choice that their class leaves off, or another than its own
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{name} (windows)": (name, {**MORE.get(name, {}), "sliding_window": WINDOW}) for name in WINDOWED},
    **{f"{name} (some windows)": (name, {**SLIDING, "max_window_layers": 5}) for name in ("qwen3", "qwen2_moe")},
    "qwen3_moe (windows)": ("qwen3_moe", {**SLIDING, "max_window_layers": 5}),
    "smollm3 (windows)": ("smollm3", SLIDING),
    "dots1 (some windows)": ("dots1", {**MORE["dots1"], "max_window_layers": 5}),
    "falcon (new)": ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "gpt_bigcode (all heads)": ("gpt_bigcode", {"multi_query": False}),
    "gemma4_text (fewer heads)": ("gemma4_text", {"attention_k_eq_v": True, "num_global_key_value_heads": 1}),
    "llama4_text (no chunks)": ("llama4_text", {"attention_chunk_size": None}),
    "mpt (one head)": ("mpt", {"attn_config": {"attn_type": "multiquery_attention"}}),
    "modernbert-decoder (4)": ("modernbert-decoder", {"local_attention": 16, "global_attn_every_n_layers": 4}),
    "glm_moe_dsa (shared)": ("glm_moe_dsa", {"index_topk_freq": 3}),
    "bailing_hybrid (5)": ("bailing_hybrid", {"layer_group_size": 5}),
    "gemma3_text (4)": ("gemma3_text", {"sliding_window_pattern": 4}),
    "cohere2 (3)": ("cohere2", {"sliding_window_pattern": 3}),
    "afmoe (3)": ("afmoe", {"global_attn_every_n_layers": 3}),
    "qwen3_next (3)": ("qwen3_next", {"full_attention_interval": 3}),
}


def smaller(config: dict[str, Any]) -> dict[str, Any]:
    """The same fields in tiny sizes, nested or not; what a class derives (lists, one entry a layer) is left to it."""
    tiny: dict[str, Any] = {}
    for name, value in config.items():
        if name in SIZES and type(value) is int and value > 0:
            tiny[name] = min(SIZES[name], value)
        elif name.endswith("_config") and name != "per_layer_config" and isinstance(value, dict):
            tiny[name] = smaller(value) | ({"model_type": value["model_type"]} if "model_type" in value else {})
        elif name in KV_HEADS and type(value) is int and value > 1:
            tiny[name] = HEADS if value in (config.get("num_attention_heads"), config.get("n_heads")) else 2
    return tiny | {name: number for name, number in TOKEN_IDS.items() if name in config}


def tiny_config(name: str) -> PreTrainedConfig:
    """The config of a family or of a variant of one."""
    family, more = VARIANTS.get(name, (name, MORE.get(name, {})))
    defaults = CONFIG_MAPPING[family]()
    return CONFIG_MAPPING[family](**{**smaller(defaults.to_dict()), **more}, dtype="float32")


def tiny_model(config: PreTrainedConfig) -> PreTrainedModel:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return AutoModelForCausalLM.from_config(config, experts_implementation="eager").float().eval()


def texts_of(config: PreTrainedConfig) -> list[str]:
    return [config.to_json_string(use_diff=False), config.to_json_string(use_diff=True)]


def held_bytes(model: PreTrainedModel, tokens: int) -> int:
    """Bytes of the tensors that the family's own cache holds after one forward of so many tokens."""
    ids = torch.arange(tokens)[None] % 100 + 3
    with torch.inference_mode():
        out = model(input_ids=ids, use_cache=True)
    cache = next((out[name] for name in CACHES if out.get(name) is not None), None)
    if cache is None:
        raise ValueError("its output holds no cache")
    layers = getattr(cache, "layers", [])
    beside = {name: value for name, value in vars(cache).items() if name != "layers"} if layers else cache
    return sum(map(layer_bytes, layers)) + sum(map(tensor_bytes, tensors_in(beside)))


def layer_bytes(layer: Any) -> int:
    """One layer of the stock cache.

    Between two forwards a sliding layer holds the W - 1 entries that the next query needs beside its own; kvviz counts
    what a query sees, its own key included, so a full window stands for W.
    """
    held = sum(tensor_bytes(tensor) for tensor in tensors_in(vars(layer)))
    window = getattr(layer, "sliding_window", None)
    if window is None or layer.cumulative_length < window:
        return held
    entry = sum(tensor_bytes(tensor) for tensor in (layer.keys, layer.values)) // layer.keys.shape[-2]
    return held + entry


def tensor_bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor of numbers inside lists, tuples, dicts and the caches in them; counters are no entries."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)
    elif type(value).__module__.startswith("transformers.") and not isinstance(value, PreTrainedConfig):
        yield from tensors_in(vars(value))

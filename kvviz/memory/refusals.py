"""Fields that change what a cache holds in a way kvviz has no formula for. Switched off, they change nothing."""

from __future__ import annotations

from typing import Any

from kvviz.memory.fields import Fields, is_said, shown

NOT_UNDERSTOOD = (
    *("compress_ratios", "block_configs", "hybrid_override_pattern", "layers_block_type", "block_types"),
    *("ssm_cfg", "rwkv_head_size", "linear_attn_config", "cross_attention_layers", "mixer_types"),
    *("num_key_value_heads_per_layer", "indexer_compress_ratio", "kv_sharing_modes"),
    *("attention_window_size", "is_encoder_decoder", "indexer_head_dim", "use_cla", "cla_share_factor"),
    *("encoder_layers", "decoder_layers", "add_cross_attention", "n_recurrent_loops", "mem_len", "prompt_length"),
    *("attn_mode", "expand_k", "expand_ratio", "decay_low_rank_dim", "qk_dim_factor", "slstm_at", "lru_width"),
)
# states and which layers have one: layer_types says it too, and then decides
UNLESS_LISTED = (
    *("attn_layer_period", "attn_layer_indices", "state_size", "ssm_state_size", "mamba_d_state", "time_step_rank"),
    *("full_attn_idxs", "conv_L_cache"),
)
SWITCHES = {"cla_share_factor": "use_cla"}  # a field and the switch that must not be off for it to mean something
SEES_BOTH_WAYS = (True, "all")


def refuse_unknown(fields: Fields) -> None:
    is_listed = is_said(fields.get("layer_types"))
    for name in NOT_UNDERSTOOD:
        if is_said(fields.get(name)) and fields.get(SWITCHES.get(name, name)) is not False:
            raise ValueError(f"The field {name} changes what the cache holds in a way kvviz has no formula for.")
    for name in () if is_listed else UNLESS_LISTED:
        if is_said(fields.get(name)):
            raise ValueError(
                f"The field {name} speaks of layers with a state, which kvviz has no formula for; if all layers are "
                "attention, add layer_types."
            )
    if fields.get("q_lora_rank") is not None and fields.get("kv_lora_rank") is None:
        raise ValueError("The config has q_lora_rank but no kv_lora_rank: a compressed attention without its width.")
    if fields.get("index_head_dim") is not None and fields.get("kv_lora_rank") is None:
        raise ValueError("The field index_head_dim is understood beside kv_lora_rank only.")
    if (is_latent := fields.flag("use_mla")) is not None and is_latent != (fields.get("kv_lora_rank") is not None):
        beside = "no kv_lora_rank" if is_latent else "a kv_lora_rank"
        raise ValueError(f"The config has use_mla={shown(is_latent)} and {beside}; leave only what holds.")
    if (both := fields.get("use_bidirectional_attention")) in SEES_BOTH_WAYS and fields.any_of("window", least=-1):
        raise ValueError(
            f"The field use_bidirectional_attention={shown(both)} changes the width of the sliding window in a "
            "way kvviz has no formula for."
        )
    refuse_kinds(fields.get("attn_type_list"))


def refuse_kinds(kinds: Any) -> None:
    """MiniMax's older list, one number a layer."""
    if not isinstance(kinds, (list, type(None))):
        raise ValueError(f"The field attn_type_list={shown(kinds)} must be a list of numbers, one a layer.")
    for kind in kinds or []:
        if type(kind) is not int or kind != 1:
            raise ValueError(f"The field attn_type_list names {shown(kind)}; kvviz knows 1, full attention.")

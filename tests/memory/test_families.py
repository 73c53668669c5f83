"""Families whose cache is not what the common rules say: counted by their own rule, or refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from kvviz.memory import Ask
from kvviz.memory.engines import ENGINES
from kvviz.memory.formats import parse_any_storage
from kvviz.memory.inverse import growth_bytes
from tests.memory.examples import LINEAR, bytes_at, repeat, shape

PLAIN: dict[str, Any] = {"num_hidden_layers": 12, "num_attention_heads": 8, "hidden_size": 512, "dtype": "bfloat16"}
TOKEN = 12 * 2 * 512 * 2  # bytes of one token of PLAIN, every query head with a key and a value of its own
RING = {"model_type": "bailing_moe_linear", "num_hidden_layers": 20, "hidden_size": 2048, "num_attention_heads": 16}
RING |= {"num_key_value_heads": 4, "head_dim": 128, "layer_group_size": 5, "dtype": "bfloat16"}
RECURRENT = (
    "gla",
    "retnet",
    "xlstm",
    "rwkv",
    "rwkv5",
    "rwkv6",
    "rwkv7",
    "delta_net",
    "gated_deltanet",
    "mamba",
    "mamba2",
)
RECURRENT += ("falcon_mamba", "hgrn2", "mesa_net", "log_linear_mamba2")


@pytest.mark.parametrize("family", RECURRENT)
def test_a_recurrent_family_is_refused(family: str) -> None:
    """RWKV-7 was counted as attention that grows by 196,608 bytes a token; its state has a constant size."""
    with pytest.raises(ValueError, match=f'model_type="{family}" names a family that keeps a state of constant size'):
        shape(model_type=family, num_hidden_layers=24, hidden_size=2048, num_heads=32, head_dim=64)


@pytest.mark.parametrize("field", ["attn_mode", "expand_k", "decay_low_rank_dim", "qk_dim_factor", "rwkv_head_size"])
def test_a_recurrent_family_of_another_name_is_known_by_its_fields(field: str) -> None:
    with pytest.raises(ValueError, match=f"The field {field} changes what the cache holds"):
        shape(**PLAIN, **{field: 64})


def test_only_the_last_layer_of_a_group_grows() -> None:
    """Ring-mini with groups of 5 was counted as 40,960 bytes a token: four layers of twenty grow, 8,192 bytes."""
    model = shape(**RING)
    assert growth_bytes(model, Ask(1000)) == 8192
    assert bytes_at(model, 1000) == 16 * 16 * 128 * 128 * 4 + 1000 * 8192


def test_layers_after_the_last_whole_group_are_full() -> None:
    model = shape(**{**RING, "num_hidden_layers": 22})
    assert [group.places for group in model.groups if group.kind == "full"] == [(4, 9, 14, 19, 20, 21)]


@pytest.mark.parametrize("nested", [False, True])
def test_a_head_size_that_is_left_out_is_the_family_s(nested: bool) -> None:
    """Gemma 2 without head_dim was counted with hidden size / heads, 119,808 bytes a token; its class takes 256."""
    fields = {"model_type": "gemma2", "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4}
    fields |= {"hidden_size": 2304, "sliding_window": 4096}
    model = (
        shape(text_config=fields, model_type="any", dtype="bfloat16") if nested else shape(**fields, dtype="bfloat16")
    )
    assert bytes_at(model, 1) == 106_496
    assert model.notes[0] == "Not in the config, so as in transformers' gemma2: head_dim=256."


def test_a_text_part_that_names_no_type_is_the_one_of_its_model() -> None:
    """Gemma 3's nested part leaves out heads, KV heads and head size, and often its own type."""
    part = {"num_hidden_layers": 34, "hidden_size": 2560, "sliding_window": 1024}
    model = shape(model_type="gemma3", text_config=part, vision_config={"hidden_size": 1152}, dtype="bfloat16")
    assert [(group.kv_heads, group.key_width, group.layers) for group in model.groups] == [(4, 256, 29), (4, 256, 5)]
    assert "Only the text model is counted" in model.notes[-1] and "(vision_config)" in model.notes[-1]


def test_a_whole_config_says_how_large_the_model_is() -> None:
    """Transformers takes its defaults for that in nested parts alone; anywhere else the field was lost."""
    for name in ("num_hidden_layers", "num_attention_heads"):
        with pytest.raises(ValueError, match=f"The config has no {name}"):
            shape(**{key: value for key, value in PLAIN.items() if key != name}, model_type="llama")


def test_a_default_that_does_not_fit_is_called_a_default() -> None:
    with pytest.raises(
        ValueError, match=r"num_key_value_heads=32 \(the default of qwen2\) must divide the 8 query heads"
    ):
        shape(**PLAIN, model_type="qwen2")


def test_local_attention_counts_half_its_window() -> None:
    """ModernBERT's decoder was counted in full; two of three layers hold 64 tokens of a window of 128."""
    fields = {"model_type": "modernbert-decoder", "num_hidden_layers": 22, "num_attention_heads": 12}
    fields |= {"hidden_size": 768, "local_attention": 128, "global_attn_every_n_layers": 3, "dtype": "float32"}
    assert bytes_at(shape(**fields), 4096) == 206_831_616


MULTIQUERY = {"num_hidden_layers": 24, "num_attention_heads": 16, "hidden_size": 4096, "dtype": "bfloat16"}


@pytest.mark.parametrize("more", [{"attention_head_type": "multiquery"}, {"multi_query": True}])
def test_one_kv_head_by_a_word(more: dict[str, Any]) -> None:
    """Multi-query attention said by a word was counted as 393,216 bytes a token; one KV head needs 24,576."""
    assert bytes_at(shape(**MULTIQUERY, **more), 1) == 24_576


def test_the_other_kinds_of_attention_by_a_word() -> None:
    assert bytes_at(shape(**MULTIQUERY, attention_head_type="mha"), 1) == 393_216
    assert bytes_at(shape(**MULTIQUERY, attention_head_type="gqa", num_key_value_heads=4), 1) == 98_304
    with pytest.raises(ValueError, match='attention_head_type="odd" is not known to kvviz; it knows multiquery'):
        shape(**MULTIQUERY, attention_head_type="odd")


def test_mpt_names_its_kv_heads_inside() -> None:
    """MPT's attn_config was refused, though its kv_n_heads says what is needed."""
    grouped = {"attn_type": "grouped_query_attention", "kv_n_heads": 2}
    assert bytes_at(shape(**PLAIN, model_type="mpt", attn_config=grouped), 1) == TOKEN // 4
    plain = {"attn_type": "multihead_attention", "attn_impl": "torch", "alibi": True}
    assert bytes_at(shape(**PLAIN, model_type="mpt", attn_config=plain), 1) == TOKEN
    assert bytes_at(shape(**PLAIN, attn_config={"attn_type": "multiquery_attention"}), 1) == TOKEN // 8
    with pytest.raises(ValueError, match="attn_config=7 must be an object"):
        shape(**PLAIN, attn_config=7)


@pytest.mark.parametrize("family", ["t5", "whisper", "m2m_100"])
def test_a_decoder_beside_an_encoder_is_refused(family: str) -> None:
    with pytest.raises(ValueError, match="does not count the keys and values of its encoder's output"):
        shape(**PLAIN, model_type=family)


@pytest.mark.parametrize("family", ["vit", "deberta-v2", "wav2vec2", "eurobert", "modernbert", "nezha"])
def test_what_only_reads_has_no_cache(family: str) -> None:
    with pytest.raises(ValueError, match="names an encoder, which has no KV cache"):
        shape(**PLAIN, model_type=family)


@pytest.mark.parametrize(
    "scheme", [{"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, {"kv_cache_quant_algo": "FP8"}]
)
def test_a_checkpoint_for_a_cache_of_8_bits_says_so(scheme: dict[str, Any]) -> None:
    """The wish for an 8-bit cache was passed over; the bytes are those of the number format, and a note says which."""
    model = shape(**PLAIN, quantization_config=scheme)
    assert bytes_at(model, 1) == TOKEN
    assert "asks for a quantised cache (kv_cache" in model.notes[0]
    assert not shape(**PLAIN, quantization_config={"kv_cache_scheme": None, "bits": 4}).notes


@pytest.mark.parametrize("storage", ["q8_0", "q4_0"])
def test_blocks_of_32_go_by_head(storage: str) -> None:
    """Heads of 80 numbers were coded in blocks that ran over into the next head; llama.cpp refuses them."""
    with pytest.raises(
        ValueError, match=f"{storage} codes a head in blocks of 32 numbers, and a head of 80 is not made"
    ):
        bytes_at(shape(**PLAIN, head_dim=80), 1, storage=parse_any_storage(storage))
    assert bytes_at(shape(**PLAIN, head_dim=96), 1, storage=parse_any_storage("q8_0")) == 12 * 2 * 8 * 3 * 34


def test_llama_cpp_keeps_states_in_float32_and_one_input_less() -> None:
    """States were taken over as transformers keeps them; llama.cpp holds kernel - 1 inputs, all of it in float32."""
    model = shape(**PLAIN, layer_types=["linear_attention"] * 12, **LINEAR)
    numbers, inputs = 48 * 128 * 128, 2 * 16 * 128 + 48 * 128
    assert bytes_at(model, 7) == 12 * (numbers * 4 + inputs * 4 * 2)
    assert ENGINES["llama_cpp"].bytes(model, Ask(7)) == 12 * (numbers + inputs * 3) * 4


UNCHANGED: tuple[dict[str, Any], ...] = (
    {"sliding_window": -1},
    {"sliding_window": 0},
    {"window_size": 0},
    {"seq_length": 8192, "max_position_embeddings": 32_768},
    {"use_cla": False, "cla_share_factor": 2},
    {"torch_dtype": "auto"},
    {"layer_types": repeat("F", 12), "mamba_d_state": 128, "mamba_n_heads": 48, "mamba_d_conv": 4, "state_size": 16},
    {"layer_types": repeat("F", 12), "attn_layer_period": 8, "attn_layer_indices": [3]},
)


@pytest.mark.parametrize("more", UNCHANGED, ids=str)
def test_a_field_that_changes_no_byte_refuses_nothing(more: dict[str, Any]) -> None:
    assert bytes_at(shape(**PLAIN, **more), 1) == TOKEN


def test_the_hidden_size_by_its_name_in_bloom() -> None:
    assert bytes_at(shape(num_hidden_layers=12, n_head=8, n_embed=512, dtype="bfloat16"), 1) == TOKEN


def test_a_share_factor_that_is_on_is_refused() -> None:
    for more in ({"cla_share_factor": 2}, {"use_cla": True, "cla_share_factor": 2}):
        with pytest.raises(ValueError, match="cla"):
            shape(**PLAIN, **more)


def test_layers_that_share_an_indexer_hold_no_key_of_it() -> None:
    latent = {**PLAIN, "kv_lora_rank": 64, "qk_rope_head_dim": 8, "index_head_dim": 16}
    assert bytes_at(shape(**latent), 1) == 12 * (72 + 16) * 2
    kinds = ["full", "shared"] * 6
    assert bytes_at(shape(**latent, indexer_types=kinds), 1) == (12 * 72 + 6 * 16) * 2
    with pytest.raises(ValueError, match="no indexer_types to say which"):
        shape(**latent, index_topk_freq=4)


def test_a_window_of_tokens_before_the_query_counts_the_query_too() -> None:
    """MiMo-V2-Flash names the tokens before a query, and its sliding layers have twice the KV heads of the others."""
    fields = {**PLAIN, "model_type": "mimo_v2_flash", "layer_types": repeat("SF", 12), "num_key_value_heads": 2}
    fields |= {"head_dim": 64, "v_head_dim": 32, "sliding_window_size": 128}
    assert [(group.kv_heads, group.window) for group in shape(**fields).groups] == [(4, 129), (2, None)]


def test_short_convolutions_hold_their_last_inputs() -> None:
    """LFM2 in float32: a layer's convolution keeps three inputs of 512 numbers."""
    kinds = ["conv", "full_attention"] * 6
    model = shape(**{**PLAIN, "dtype": "float32"}, layer_types=kinds, conv_L_cache=3)
    assert bytes_at(model, 9) == 6 * 3 * 512 * 4 + 9 * 6 * 2 * 512 * 4


def test_key_wise_delta_states() -> None:
    """Kimi Linear: queries, keys and values of 4 heads of 16 each pass a convolution over 4 tokens."""
    model = shape(
        **PLAIN, layer_types=repeat("L", 12), linear_num_heads=4, linear_head_dim=16, linear_conv_kernel_dim=4
    )
    assert bytes_at(model, 9) == 12 * (4 * 16 * 16 * 4 + 3 * 4 * 16 * 4 * 2)


def test_a_mamba_layer_is_refused_by_its_own_field() -> None:
    """Granite's hybrid was told to add fields of another kind of state."""
    with pytest.raises(ValueError, match="The field mamba_d_state describes the state of a layer, which kvviz has no"):
        shape(**PLAIN, model_type="granitemoehybrid", layer_types=repeat("LF", 12), mamba_d_state=128)


def test_a_window_that_the_family_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="sliding_window=64 but neither layer_types nor sliding_window_pattern"):
        shape(**PLAIN, model_type="llama", sliding_window=64)


def test_layers_without_attention_hold_nothing() -> None:
    model = shape(**PLAIN, layer_types=["mlp", "moe", "full_attention"] * 4)
    assert bytes_at(model, 1) == TOKEN // 3


def test_a_window_that_looks_both_ways_is_refused() -> None:
    """EmbeddingGemma's class halves the window; PaliGemma, which has none, is counted."""
    with pytest.raises(ValueError, match="use_bidirectional_attention=true changes the width of the sliding window"):
        shape(**PLAIN, model_type="gemma3_text", use_bidirectional_attention=True, num_key_value_heads=8)
    assert bytes_at(shape(**PLAIN, use_bidirectional_attention=True), 1) == TOKEN


def test_layers_with_sizes_of_their_own() -> None:
    """Gemma 4 as transformers saves it: its full layers have wider heads, one entry a layer."""
    own = {"05": {"head_dim": 128, "num_key_value_heads": 2}, "11": {"head_dim": 128, "intermediate_size": 9}}
    model = shape(**PLAIN, per_layer_config=own)
    assert bytes_at(model, 1) == 10 * 2 * 512 * 2 + 2 * 2 * 128 * 2 + 2 * 8 * 128 * 2
    for wrong in (7, {"x": {}}, {"12": {"head_dim": 1}}, {"3": 7}, {"3": {"kv_lora_rank": 7}}):
        with pytest.raises(ValueError, match="per_layer_config"):
            shape(**PLAIN, per_layer_config=wrong)


def test_gemma_4_has_wide_heads_in_full_layers_though_its_config_does_not_say() -> None:
    fields = {"model_type": "gemma4_text", "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4}
    assert [group.key_width for group in shape(**fields, dtype="bfloat16").groups] == [256, 512]


@pytest.mark.parametrize(
    "family",
    (
        *("siglip_vision_model", "clip_vision_model", "sam", "detr", "videomae", "qwen2_audio_encoder", "pixtral"),
        *("patchtst", "lilt", "canine", "jina_bert", "neobert", "new_bert", "layoutxlm", "internvl_vision"),
    ),
)
def test_a_tower_or_encoder_of_any_name_has_no_cache(family: str) -> None:
    """They were counted as if they grew: what transformers has no causal language model for is refused."""
    with pytest.raises(ValueError, match=r"no language model that writes text on its own|names an encoder"):
        shape(**PLAIN, model_type=family)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"model_type": "llada"}, "see what follows"),
        ({"model_type": "llama", "is_causal": False}, "see what follows"),
        ({"architectures": ["BertForMaskedLM"]}, "names no language model that writes text"),
        ({"model_type": "llama", "num_key_value_heads": 4, "multi_query": True}, "disagree"),
    ],
)
def test_what_cannot_be_a_growing_cache_is_refused(more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        shape(**{**PLAIN, **more})


@pytest.mark.parametrize(
    "more",
    [
        {"quantization_config": {"kv_cache_scheme": {"num_bits": 4, "type": "int"}}},
        {"quantization_config": {"kv_cache_quant_algo": "NVFP4"}},
        {"quantization_config": {"kv_cache_quant_config": {"*": {"dtype": "fp8_e4m3"}}}},
        {"use_cache_quantization": True},
    ],
)
def test_a_checkpoint_for_any_quantised_cache_says_so(more: dict[str, Any]) -> None:
    assert any("asks for a quantised cache" in note for note in shape(**{**PLAIN, **more}).notes)

"""Reading any config: aliases, absent fields, older spellings, and refusals that name the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvviz.choices.setup import Setup
from kvviz.memory import read_config
from kvviz.memory.config import shape_of
from kvviz.run.replay import replay
from tests.memory.examples import (
    DEEPSEEK_V4,
    E2B,
    E4B,
    FALCON,
    GPT2,
    LINEAR,
    LLAMA_4,
    bytes_at,
    mla,
    repeat,
    shape,
)
from tests.tiny import NAMES, some_ids, tiny

PLAIN: dict[str, Any] = {"num_hidden_layers": 12, "num_attention_heads": 8, "hidden_size": 512}
WINDOW: dict[str, Any] = {**PLAIN, "sliding_window": 100}


def windows(fields: dict[str, Any]) -> list[int | None]:
    """The window of every layer, None = full."""
    model = shape(**fields)
    found = {place: group.window for group in model.groups for place in group.places}
    return [found[place] for place in range(len(found))]


def test_names_of_older_models() -> None:
    model = shape(**GPT2)
    assert bytes_at(model, 1) == 36 * 1024 and model.longest == 1024


@pytest.mark.parametrize("more", [{}, {"num_key_value_heads": None}])
def test_without_kv_heads_every_query_head_has_its_own(more: dict[str, Any]) -> None:
    """Known fault 125: absent or empty KV heads are counted as none, or as query heads where blocks differ."""
    assert bytes_at(shape(**PLAIN, **more), 1) == 12 * 2 * 512 * 2


def test_the_head_size_of_the_config_comes_first() -> None:
    """Known fault 101: the head size is taken as hidden size over heads though the config says another."""
    assert bytes_at(shape(**PLAIN, head_dim=128), 1) == 12 * 2 * 8 * 128 * 2
    assert bytes_at(shape(**PLAIN, head_dim=None), 1) == 12 * 2 * 8 * 64 * 2


def test_falcon_has_one_kv_head_whatever_it_says() -> None:
    """Known fault 107: multi-query attention is counted with all heads."""
    assert bytes_at(shape(**FALCON), 2048) == 16 * 2**20
    old = {name: value for name, value in FALCON.items() if name not in ("multi_query", "new_decoder_architecture")}
    assert bytes_at(shape(**old, model_type="falcon"), 1) == 8192
    new = {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 8, "n_head": 128, "hidden_size": 8192}
    assert bytes_at(shape(**new), 1) == 32 * 2 * 8 * 64 * 2


def test_a_nested_text_model_is_found() -> None:
    assert windows(LLAMA_4).count(8192) == 36 and windows(LLAMA_4)[3] is None
    assert bytes_at(shape(**LLAMA_4), 8193) == 36 * 8192 * 4096 + 12 * 8193 * 4096
    assert not shape(**LLAMA_4).notes  # its number format stands outside the nested part


def test_without_a_number_format_bfloat16_is_taken_and_said() -> None:
    model = shape(**PLAIN)
    assert model.dtype == "bfloat16" and "bfloat16 is taken" in model.notes[0]
    assert shape(**PLAIN, torch_dtype="float32").dtype == shape(**PLAIN, dtype="float32").dtype == "float32"


@pytest.mark.parametrize(
    "more", [{"use_sliding_window": False}, {"model_type": "qwen2", "num_key_value_heads": 8}, {"model_type": "phi3"}]
)
def test_a_window_that_is_switched_off(more: dict[str, Any]) -> None:
    assert windows({**WINDOW, **more}) == [None] * 12
    assert windows({**PLAIN, "sliding_window": None}) == [None] * 12


def test_older_spellings_of_layer_types() -> None:
    third = [100, 100, None] * 4
    assert windows({**WINDOW, "layer_types": repeat("SSF", 12)}) == third
    assert windows({**WINDOW, "sliding_window_pattern": 3}) == third
    assert windows({**WINDOW, "sliding_window_pattern": "LLG"}) == third
    assert windows({**WINDOW, "hybrid_layer_pattern": [1, 1, 0] * 4}) == third
    assert windows({**PLAIN, "window_size": 100, "attention_types": [[["local", "local", "global"], 4]]}) == third
    assert windows({**PLAIN, "window_size": 100, "attention_layers": ["local", "local", "global"] * 4}) == third
    assert windows({**WINDOW, "use_sliding_window": True, "max_window_layers": 10}) == [None] * 10 + [100] * 2
    assert windows({**WINDOW, "model_type": "gemma2"}) == [100, None] * 6
    assert windows({**WINDOW, "model_type": "gemma3_text"}) == ([100] * 5 + [None]) * 2
    assert windows({**WINDOW, "model_type": "mistral"}) == [100] * 12


def test_layers_that_share_a_cache_hold_nothing() -> None:
    """Known fault 115: layers that read the cache of earlier ones are counted again."""
    assert shape(**E4B).layers == 24 and shape(**E2B).layers == 15
    assert "last 18 layers read the cache of earlier ones" in " ".join(shape(**E4B).notes)


def test_key_and_value_of_different_width() -> None:
    assert bytes_at(shape(**PLAIN, head_dim=192, v_head_dim=128), 1) == 12 * 8 * (192 + 128) * 2


def test_latent_attention_is_known_by_its_rank_beside_any_head_size() -> None:
    """Known fault 119: a head size beside the latent's fields decides instead of the latent."""
    assert bytes_at(mla(78, head_dim=64, num_key_value_heads=64), 1) == 89_856
    assert bytes_at(mla(78, head_dim=64, index_head_dim=128), 1) == 89_856 + 19_968


def test_linear_layers_hold_a_constant() -> None:
    hybrid = {**PLAIN, "layer_types": repeat("LLLF", 12), "dtype": "bfloat16", **LINEAR}
    one, many = (bytes_at(shape(**hybrid), tokens) for tokens in (1, 1001))
    state = 9 * (48 * 128 * 128 * 4 + (2 * 16 * 128 + 48 * 128) * 4 * 2)
    assert one == state + 3 * 2 * 512 * 2 and many - one == 1000 * 3 * 2 * 512 * 2
    assert bytes_at(shape(**hybrid), 1) == bytes_at(
        shape(**{**hybrid, "layer_types": None, "full_attention_interval": 4}), 1
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_config_of_a_running_model_gives_the_bytes_of_its_tensors(name: str) -> None:
    model = shape_of(tiny(name).config.to_dict(), name)
    for tokens in (1, 40):
        held = replay(tiny(name), some_ids(tokens).tolist(), Setup()).cache_bytes
        assert bytes_at(model, tokens, dtype="float64") == held


KV_NAMES = ("n_head_kv", "n_kv_heads", "n_kv_head", "kv_n_heads", "num_query_groups", "num_attention_groups")


@pytest.mark.parametrize("name", [*KV_NAMES, "multi_query_group_num"])
def test_kv_heads_by_any_of_their_names(name: str) -> None:
    assert bytes_at(shape(dim=4096, n_layers=32, n_heads=32, **{name: 8}), 1) == 32 * 2 * 8 * 128 * 2
    with pytest.raises(ValueError, match=f"The field {name}=3 must divide the 8 query heads"):
        shape(**PLAIN, **{name: 3})


def test_groups_that_are_switched_off_say_nothing() -> None:
    assert shape(**PLAIN, multi_query_attention=False, multi_query_group_num=1).groups[0].kv_heads == 8
    assert shape(**PLAIN, multi_query_attention=True, multi_query_group_num=2).groups[0].kv_heads == 2
    assert shape(**PLAIN, multi_query_attention=True).groups[0].kv_heads == 1
    assert shape(**PLAIN, group_query_attention=False, num_query_groups=1).groups[0].kv_heads == 8


UNKNOWN_KV = ("num_key_value_groups", "num_kv_groups", "kv_head_count", "n_gqa_groups", "NumKVHeads", "gqa_ratio")
UNKNOWN_KV += ("swa_num_key_value_heads", "decoder_attention_num_groups")


@pytest.mark.parametrize("name", UNKNOWN_KV)
def test_a_name_that_may_mean_kv_heads_is_not_passed_over(name: str) -> None:
    with pytest.raises(ValueError, match=f'The field "{name}" may say how many KV heads there are') as refused:
        shape(**PLAIN, **{name: 4})
    assert str(refused.value).endswith("add num_key_value_heads.")
    assert shape(**PLAIN, **{name: 4}, num_key_value_heads=2).groups[0].kv_heads == 2
    assert shape(**PLAIN, **{name: None}).groups[0].kv_heads == 8


HARMLESS = (
    "use_cache",
    "n_group",
    "topk_group",
    "num_groups",
    "norm_num_groups",
    "mamba_n_groups",
    "qkv_bias",
    "clip_qkv",
)
HARMLESS += ("num_expert_groups", "num_conv_pos_embedding_groups", "attention_group_size", "layer_group_size")


@pytest.mark.parametrize("name", HARMLESS)
def test_names_that_only_look_like_kv_heads_are_accepted(name: str) -> None:
    assert shape(**PLAIN, **{name: 1}).groups[0].kv_heads == 8


def test_widths_and_sharing_do_not_look_like_kv_heads() -> None:
    assert shape(**PLAIN, kv_channels=64, num_kv_shared_layers=2).layers == 10


def test_latent_attention_may_be_said_twice() -> None:
    assert bytes_at(mla(78, use_mla=True), 1) == 89_856 and shape(**PLAIN, use_mla=False).groups[0].kind == "full"


def test_what_layer_types_says_needs_no_list_of_full_layers() -> None:
    assert windows({**PLAIN, "layer_types": repeat("F", 12), "full_attn_idxs": list(range(12))}) == [None] * 12


def test_an_encoder_s_layers_as_a_decoder_have_a_cache() -> None:
    assert shape(**PLAIN, model_type="bert", is_decoder=True).layers == 12


REFUSED = [
    (DEEPSEEK_V4, "compress_ratios"),
    ({**PLAIN, "q_lora_rank": 1024}, "q_lora_rank but no kv_lora_rank"),
    ({**PLAIN, "num_key_value_heads": None, "block_configs": [{"attention": {}}]}, "block_configs"),
    ({**PLAIN, "num_key_value_heads": 3}, "num_key_value_heads=3 must divide the 8 query heads"),
    ({**PLAIN, "num_key_value_heads": [1, 2]}, "num_key_value_heads=[1, 2]"),
    ({**PLAIN, "num_key_value_heads": "8"}, 'num_key_value_heads="8" must be a whole number'),
    ({**PLAIN, "num_hidden_layers": -1}, "num_hidden_layers=-1"),
    ({**PLAIN, "num_hidden_layers": 10**9}, "num_hidden_layers=1000000000 must be a whole number from 1 to 10,000"),
    ({**PLAIN, "num_hidden_layers": 1.5}, "num_hidden_layers=1.5"),
    ({**PLAIN, "num_hidden_layers": True}, "num_hidden_layers=true"),
    ({**PLAIN, "n_layer": 13}, "num_hidden_layers=12 and n_layer=13 disagree"),
    ({**PLAIN, "hidden_size": 513}, "hidden_size=513 is no multiple of 8 heads"),
    ({"num_attention_heads": 8}, "no num_hidden_layers"),
    ({**PLAIN, "layer_types": ["full_attention"] * 11}, "layer_types must be a list of 12 entries"),
    ({**PLAIN, "layer_types": ["mamba"] * 12}, 'layer_types names "mamba"'),
    ({**PLAIN, "layer_types": repeat("SF", 12)}, "no number for sliding_window"),
    ({**PLAIN, "layer_types": repeat("LF", 12)}, "no linear_num_key_heads"),
    ({**PLAIN, "attn_type_list": [0, 1] * 6}, "attn_type_list names 0"),
    (WINDOW, "neither layer_types nor sliding_window_pattern"),
    ({**PLAIN, "attention_chunk_size": 64}, "attention_chunk_size but no layer_types"),
    ({**PLAIN, "kv_lora_rank": 512}, "no qk_rope_head_dim"),
    ({**PLAIN, "torch_dtype": "float7"}, "torch_dtype: There is no number format 'float7'"),
    ({**PLAIN, "is_encoder_decoder": True}, "is_encoder_decoder"),
    ({"text_config": "llama"}, 'text_config="llama" must be an object'),
    ({**WINDOW, "use_sliding_window": "false"}, 'use_sliding_window="false" must be true or false'),
    ({**PLAIN, "model_type": 7}, "model_type=7 must be a word"),
    ({**PLAIN, "full_attn_idxs": [2, 5]}, "full_attn_idxs"),
    ({**PLAIN, "full_attn_idxs": [], "conv_L_cache": 3}, "conv_L_cache"),
    ({**PLAIN, "kv_lora_rank": 64, "qk_rope_head_dim": 8, "use_mla": False}, "use_mla=false and a kv_lora_rank"),
    ({**PLAIN, "use_mla": True}, "use_mla=true and no kv_lora_rank"),
    (
        {**PLAIN, "model_type": "longcat_flash", "kv_lora_rank": 64},
        'model_type="longcat_flash" names a family that has two',
    ),
    ({**PLAIN, "model_type": "bert"}, 'model_type="bert" names an encoder, which has no KV cache to count'),
    ({**PLAIN, "attn_type_list": 0}, "attn_type_list=0 must be a list"),
    ({**PLAIN, "attn_type_list": "01"}, 'attn_type_list="01" must be a list'),
    ({**PLAIN, "attn_type_list": [True] * 12}, "attn_type_list names true"),
    ({**PLAIN, "num_kv_shared_layers": 12}, "num_kv_shared_layers=12 leaves none of 12 layers a cache"),
    ({**PLAIN, "num_kv_shared_layers": 13}, "num_kv_shared_layers=13 leaves none of 12 layers a cache"),
    ({**WINDOW, "hybrid_layer_pattern": [True, False] * 6}, "hybrid_layer_pattern names true"),
]


@pytest.mark.parametrize(("fields", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_what_is_not_understood_is_refused_by_its_field(fields: dict[str, Any], sentence: str) -> None:
    """Known fault 120: a compressed cache of an unknown kind is silently counted as grouped heads.

    Known fault 125: absent or empty KV heads are counted as none, or as query heads where blocks differ.
    """
    with pytest.raises(ValueError) as refused:
        shape(**fields)
    said = str(refused.value)
    assert sentence in said and said.endswith(".") and "\n" not in said


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "not JSON"),
        ("[1]", "one JSON object"),
        ("null", "one JSON object"),
        ('{"num_hidden_layers": NaN}', "holds NaN"),
        ('{"num_hidden_layers": -Infinity}', "holds -Infinity"),
        ('{"num_hidden_layers": 1e999}', "num_hidden_layers=Infinity must be a whole number"),
        ('{"num_hidden_layers": ' + "9" * 5000 + "}", "too many digits"),
        ('{"num_hidden_layers": ' + "9" * 400 + "}", "must be a whole number"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ('{"a": "\ud800"}', "no num_hidden_layers"),
        ('{"a": 1}' + " " * 1_000_000, "at most 1,000,000 are read"),
    ],
    ids=[
        "empty",
        "list",
        "null",
        "nan",
        "infinity",
        "1e999",
        "digits",
        "400-digits",
        "deep",
        "deeper",
        "alone",
        "long",
    ],
)
def test_hostile_json_gets_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_config(text)
    assert sentence in str(refused.value) and "\n" not in str(refused.value)


def test_a_hostile_value_is_cut() -> None:
    with pytest.raises(ValueError) as refused:
        read_config(json.dumps({**PLAIN, "num_hidden_layers": "x" * 10**5}))
    assert len(str(refused.value)) < 200


def test_widths_of_an_unused_latent_attention_may_be_0() -> None:
    """As in DeepSeek-VL2-tiny: 12 layers, 10 heads of 1280 / 10."""
    unused = {"use_mla": False, "kv_lora_rank": None, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0}
    sizes = {"num_hidden_layers": 12, "hidden_size": 1280, "num_attention_heads": 10, "num_key_value_heads": 10}
    model = shape(model_type="deepseek_vl_v2", language_config={**sizes, **unused, "torch_dtype": "bfloat16"})
    assert bytes_at(model, 1000) == 12 * 1000 * 10 * (128 + 128) * 2
    with pytest.raises(ValueError, match="v_head_dim=0"):
        shape(model_type="llama", **sizes, v_head_dim=0)

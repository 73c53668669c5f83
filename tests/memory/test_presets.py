"""Every model of the table against the bytes a token recorded beside it, and the sources' worked examples."""

from __future__ import annotations

import pytest

from kvviz.knobs import spell
from kvviz.memory import PRESETS, preset
from kvviz.memory.account import Ask, account
from kvviz.memory.inverse import growth_bytes
from kvviz.memory.retention import ask_for
from kvviz.policies import parse_policy
from tests.memory.examples import bytes_at

FAR = 10**9  # beyond every window
CHUNKED, HYBRID = "meta-llama/Llama-4-Scout-17B-16E-Instruct", "Qwen/Qwen3.5-27B"


@pytest.mark.parametrize("name", PRESETS)
def test_bytes_a_token(name: str) -> None:
    row, model = PRESETS[name], preset(name)
    first = sum(row.bytes for row in account(model, Ask(1, dtype="bfloat16")).rows if row.kind != "state")
    recorded = int(row["kv_bytes_per_token_16bit_all_layers"])
    if name == HYBRID:  # the column counts 64 layers where 16 have a cache
        assert first == recorded // 4
    else:
        assert first == recorded


@pytest.mark.parametrize("name", PRESETS)
def test_growth_beyond_the_window(name: str) -> None:
    recorded = int(PRESETS[name]["kv_growth_bytes_per_token_16bit_beyond_window"])
    growth = growth_bytes(preset(name), Ask(FAR, dtype="bfloat16"))
    if name == CHUNKED:  # the column counts all layers as full; beyond a chunk only 12 of 48 grow
        assert growth == recorded // 4
    else:
        assert growth == recorded


@pytest.mark.parametrize("name", PRESETS)
def test_layers_are_all_there(name: str) -> None:
    row, model = PRESETS[name], preset(name)
    assert model.layers == int(row["num_hidden_layers"])
    full = sum(group.layers for group in model.groups if group.kind in ("full", "mla"))
    if name != CHUNKED:
        assert full == int(row["n_full_layers"])
    assert model.source and model.as_of and model.query_heads == int(row["num_attention_heads"])


def test_a_model_is_found_by_its_short_name_in_any_case() -> None:
    assert preset("llama-3.1-8b") is not None and preset("llama-3.1-8b").name == "meta-llama/Llama-3.1-8B"
    assert preset("SmolLM2-135M-Instruct").name == "HuggingFaceTB/SmolLM2-135M"
    with pytest.raises(ValueError, match=r"no model 'llama-3.1-9b' .* did you mean 'meta-llama/Llama-3.1-8B'"):
        preset("llama-3.1-9b")


def test_four_kibibytes_a_token_make_sixteen_mebibytes() -> None:
    layer = preset("example/one-layer-of-4-KiB")
    assert bytes_at(layer, 4096) == 16 * 2**20 and bytes_at(layer, 512) == 2 * 2**20
    limited = ask_for(parse_policy("streaming:budget=512,sinks=32"), layer, tokens=4096)
    assert account(layer, limited).bytes == 2 * 2**20 == account(layer, Ask(4096)).bytes // 8
    (kept,) = limited.keeping(layer.groups[0], 4096)
    assert (kept.sinks, kept.recent) == (32, 480)


def test_half_a_gibibyte_and_twice_two() -> None:
    assert bytes_at(preset("Meta-Llama-3-8B"), 4096) == 536_870_912 == 512 * 2**20
    assert bytes_at(preset("Meta-Llama-3-8B").as_multi_head(), 4096) == 2 * 2**30
    assert bytes_at(preset("Meta-Llama-3-8B"), 4096, batch=4) == 2 * 2**30


def test_a_window_of_4096_at_32_k_holds_an_eighth() -> None:
    assert bytes_at(preset("Mistral-7B-v0.1"), 32_768) * 8 == bytes_at(preset("Mistral-7B-Instruct-v0.3"), 32_768)


def test_latent_attention_does_not_depend_on_heads() -> None:
    """Known fault 118: latent attention is counted as multi-head attention."""
    assert bytes_at(preset("Kimi-K2-Instruct"), 1000) == bytes_at(preset("DeepSeek-V3"), 1000)
    ordinary = bytes_at(preset("DeepSeek-V3").as_multi_head(), 1)
    assert ordinary == 2 * 61 * 128 * 128 * 2 and round(ordinary / bytes_at(preset("DeepSeek-V3"), 1), 1) == 56.9


def test_the_formula_is_the_number() -> None:
    """Known fault 130: a number per head is labelled per layer, so the product does not give the total."""
    bill = account(preset("gemma-3-27b"), Ask(131_072, batch=4))
    for row in bill.rows:
        product = 1
        for number, _ in row.factors:
            product *= int(number.replace(",", ""))
        assert product == row.bytes
    assert bill.formula.endswith(f"= {bill.bytes:,} B")


def test_spelling_of_a_policy_does_not_matter() -> None:
    model = preset("Llama-3.1-8B")
    policy = parse_policy("window:budget=64")
    assert account(model, ask_for(parse_policy(spell(policy)), model, tokens=999)).bytes == 64 * 131_072

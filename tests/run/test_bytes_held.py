"""The bytes that the lifetimes tell are those of the tensors, after every step, whatever a layer holds."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from transformers import AutoModelForCausalLM, DeepseekV3Config, Gemma4TextConfig, PreTrainedModel

from kvviz.choices.setup import parse_setup
from kvviz.knobs import spell
from kvviz.policies import POLICIES
from kvviz.run.replay import open_pass, replay
from tests.policies.test_matrix import sized
from tests.tiny import GQA, some_ids, tiny

TOKENS = 20
STORAGES = ("native", "int4:group=2,residual=4")
LATENT = {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8}


@cache
def two_widths() -> PreTrainedModel:
    """A model whose full layers have wider keys than its sliding ones, Gemma 4."""
    config = Gemma4TextConfig(
        **GQA,
        global_head_dim=16,
        sliding_window=9,
        hidden_size_per_layer_input=0,
        num_kv_shared_layers=0,
        vocab_size_per_layer_input=64,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
    )
    torch.manual_seed(7)
    return AutoModelForCausalLM.from_config(config).double().eval().requires_grad_(False)


@cache
def latent() -> PreTrainedModel:
    """A model that holds one latent for all its heads, DeepSeek-V3."""
    config = DeepseekV3Config(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        first_k_dense_replace=2,
        max_position_embeddings=256,
        **LATENT,
    )
    torch.manual_seed(7)
    return AutoModelForCausalLM.from_config(config).double().eval().requires_grad_(False)


def held_step_by_step(model: PreTrainedModel, words: dict[str, str], prompt_tokens: int) -> list[int]:
    run, held = open_pass(model, parse_setup(words), prompt_tokens, None), []
    for token in some_ids(TOKENS):
        run.feed(token.view(1))
        held.append(run.cache_bytes)
    return held


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("policy", [*POLICIES, "snapkv:budget=2,observe=1,kernel=5"])
@pytest.mark.parametrize("name", ["mistral", "gemma3"])
def test_in_natively_sliding_layers(name: str, policy: str, storage: str) -> None:
    """snapkv in a window of 9 was said to hold 2,176 bytes where the tensors had 2,304: some heads still had to wait
    before they could give a slot back, because all heads of a layer give back as many."""
    words = {"policy": policy if ":" in policy else spell(sized(policy, 6)), "storage": storage}
    trace = replay(tiny(name), some_ids(TOKENS).tolist(), parse_setup(words), prompt_tokens=TOKENS - 1, block=7)
    assert trace.bytes_at().tolist() == held_step_by_step(tiny(name), words, TOKENS - 1)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("policy", ["full", "h2o:budget=6,recent=3"])
def test_in_layers_of_different_widths(policy: str, storage: str) -> None:
    """The width of the first layer was taken for all."""
    words = {"policy": policy, "storage": storage}
    trace = replay(two_widths(), some_ids(TOKENS).tolist(), parse_setup(words), block=7)
    assert [widths.key for _, widths in trace.stored] == [8, 8, 16]
    assert trace.bytes_at().tolist() == held_step_by_step(two_widths(), words, TOKENS // 2)


def test_heads_that_hold_different_tokens_in_a_sliding_layer() -> None:
    """The entries that some heads cannot see any more still lie in memory, beside those of the others."""
    words = {"policy": "snapkv:budget=2,observe=1,kernel=5"}
    trace = replay(tiny("mistral"), some_ids(TOKENS).tolist(), parse_setup(words), prompt_tokens=TOKENS - 1)
    seen = (trace.evicted_at > TOKENS - 1).sum() * trace.stored[0][1].entry_bytes
    assert seen < trace.bytes_at()[-1] == trace.cache_bytes == 2304


@pytest.mark.parametrize("policy", ["full", "window:budget=6", "streaming:budget=6,sinks=2"])
def test_one_latent_for_all_heads_is_counted_once(policy: str) -> None:
    words = {"policy": policy}
    trace = replay(latent(), some_ids(TOKENS).tolist(), parse_setup(words), block=7)
    held = held_step_by_step(latent(), words, TOKENS // 2)
    assert trace.bytes_at().tolist() == held
    entries = TOKENS if policy == "full" else 6
    assert held[-1] == 2 * entries * (16 + 4) * 8  # layers, entries, latent and rotary part, bytes


@pytest.mark.parametrize("words", [{"policy": "h2o:budget=6,recent=3"}, {"policy": "random:budget=6"}])
def test_heads_that_share_a_latent_cannot_part(words: dict[str, str]) -> None:
    """They ended in a traceback."""
    with pytest.raises(ValueError, match=r"heads cannot keep different tokens.*such as window"):
        replay(latent(), some_ids(TOKENS).tolist(), parse_setup(words))


def test_a_latent_is_not_quantised_as_if_it_were_a_key() -> None:
    with pytest.raises(ValueError, match=r"nor quantise keys of their own.*storage=native"):
        replay(latent(), some_ids(TOKENS).tolist(), parse_setup({"storage": "int4"}))

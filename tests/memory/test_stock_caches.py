"""The formula beside the cache that transformers itself holds, for a family of every rule; a benchmark has all."""

from __future__ import annotations

import pytest

from benchmarks.memory_zoo import judge

# sizes by layer; a composite with delta states; an indexer; matrices a head; convolutions; KV heads by kind of layer;
# half windows; chunks; layers that read the cache of others; a decoder made of an encoder
RULES = ("gemma4_text", "qwen3_5", "hy_v4", "minimax", "lfm2", "mimo_v2_flash", "modernbert-decoder")
RULES += ("llama4_text", "gemma3n_text", "roberta")


@pytest.mark.parametrize("family", RULES)
def test_the_formula_gives_the_bytes_of_the_stock_cache(family: str) -> None:
    assert judge(family) == ("right", "")


@pytest.mark.parametrize("name", ["gpt_neo", "falcon (new)", "mpt (one head)", "phi3 (windows)"])
def test_where_runtimes_differ_a_note_says_so(name: str) -> None:
    """GPT-Neo's local layers see 8 tokens here and transformers keeps all 20; it copies Falcon's KV heads."""
    assert judge(name)[0] == "noted"


def test_a_field_that_the_family_does_not_read_decides_nothing() -> None:
    """Qwen3-MoE with a first sliding layer was counted by it; its class lets all layers slide, so a list has to say."""
    assert judge("qwen3_moe (windows)")[0] == "refused"

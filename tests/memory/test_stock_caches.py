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


def test_where_runtimes_differ_a_note_says_so() -> None:
    """GPT-Neo's local layers see 8 tokens here, and transformers keeps all 20."""
    assert judge("gpt_neo")[0] == "noted"

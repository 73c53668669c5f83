"""Counts that calculators are known to get wrong: ours beside the right number, and the wrong one it must not be."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvviz.memory import preset
from kvviz.memory.account import Ask
from kvviz.memory.engines import ENGINES
from kvviz.memory.units import both
from tests.memory.examples import E4B, bytes_at, gqa, repeat, shape
from tests.memory.test_check_figures import cells, gemma_270m_cells

QWEN3_4B = {"num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 2560}
MIB, GIB = 2**20, 2**30

COUNTS: dict[str, tuple[Callable[[], int], int, int]] = {
    # what the wrong one did: ours, the right count, the wrong one
    "head size = hidden size / heads": (
        lambda: bytes_at(shape(**QWEN3_4B, head_dim=128, dtype="bfloat16"), 1),
        147_456,
        92_160,
    ),
    "the latent taken for a key and a value": (lambda: bytes_at(preset("DeepSeek-V3"), 1), 70_272, 124_928),
    "query heads read at every step": (lambda: bytes_at(preset("Meta-Llama-3-8B"), 4096), 512 * MIB, 2 * GIB),
    "once more times the heads": (lambda: bytes_at(preset("Llama-2-7b-hf"), 1), 524_288, 32 * 524_288),
    "every query head cached": (lambda: bytes_at(preset("Meta-Llama-3-8B"), 1), 131_072, 524_288),
    "sliding layers left out": (
        lambda: bytes_at(gqa(36, 8, 64, layer_types=repeat("SF", 36), sliding_window=128), 1),
        73_728,
        36_864,
    ),
    "windows counted in full": (
        lambda: ENGINES["llama_cpp"].bytes(preset("gemma-4-26B-A4B"), Ask(131_072)),
        2_998_927_360,
        56_370_000_000,
    ),
    "layers that share a cache counted": (lambda: cells(shape(**E4B), 32_768, 2048), 612 * MIB, 42 * 32_768 * 2048),
    "4K = 4000 tokens": (lambda: bytes_at(preset("gemma-2-9b"), 4096), 21 * GIB // 16, 42 * 4000 * 8192),
    "three slots padded like four": (lambda: gemma_270m_cells(3), 27 * MIB, 18 * MIB),
    "four slots padded like three": (lambda: gemma_270m_cells(4), 18 * MIB, 27 * MIB),
}


@pytest.mark.parametrize("mistake", COUNTS)
def test_a_count_that_others_get_wrong(mistake: str) -> None:
    """Known faults 101, 102, 105, 108, 109, 111, 114, 115, 123 and 126: what each counted stands beside its row."""
    ours, right, wrong = COUNTS[mistake]
    assert ours() == right != wrong


def test_half_of_the_layers_grow_beyond_a_window() -> None:
    """Known fault 123: 4K is read as 4,000 tokens, and windows beyond them as no growth or full growth."""
    model = preset("gemma-2-9b")
    assert bytes_at(model, 4097) - bytes_at(model, 4096) == 172_032


def test_models_of_one_size_differ_by_their_kv_heads() -> None:
    """Known fault 127: bytes are estimated from the number of parameters."""
    one, other = preset("Llama-2-7b-hf"), preset("Mistral-7B-v0.1")
    assert one.parameters and other.parameters and other.parameters / one.parameters < 1.1
    assert bytes_at(one, 1) == 4 * bytes_at(other, 1)


def test_binary_and_decimal_units_stand_beside_each_other() -> None:
    """Known fault 122: GiB are printed as GB."""
    assert both(131_072 * 8192) == "1.00 GiB (1.07 GB)"

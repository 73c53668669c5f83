"""Ten thousand configs with fields changed, dropped and put in: whole numbers or one sentence, nothing else."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvviz.memory import PRESETS, Ask, account, read_config
from kvviz.memory.config import NOT_UNDERSTOOD
from kvviz.memory.fields import NAMES
from kvviz.memory.inverse import fit_tokens, growth_bytes
from kvviz.memory.presets import config_of
from tests.memory.examples import DEEPSEEK_V4, E2B, FALCON, GEMMA_4_31B, GPT2, LINEAR, LLAMA_4

CONFIGS = [*map(config_of, PRESETS.values()), E2B, FALCON, GEMMA_4_31B, GPT2, LLAMA_4, DEEPSEEK_V4]
KNOWN = {name for config in CONFIGS for name in config} | set(NOT_UNDERSTOOD[:4]) | set(LINEAR)
KNOWN |= {name for names in NAMES.values() for name in names}
KNOWN |= {"text_config", "torch_dtype", "attn_type_list", "index_head_dim", "no_rope_layers", "attention_types"}
KNOWN |= {"sliding_window_pattern", "max_window_layers", "num_kv_shared_layers", "multi_query_attention", "layer_types"}
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    2,
    3,
    4,
    7,
    64,
    128,
    4096,
    -1,
    -(2**63),
    2**40,
    10**9,
    10**300,
    0.5,
    1e308,
]
VALUES += [float("nan"), float("inf"), "", "8", "full", "bfloat16", "gemma2", "llama4_text", "qwen3_next", "mistral"]
VALUES += [[], [1], [0, 1] * 16, ["full_attention"] * 32, ["sliding_attention"] * 32, [[["global"], 12]], [["x"], 1]]
VALUES += [{}, {"a": 1}, [[[]]], ["linear_attention"] * 64, ["chunked_attention"] * 48, "LLG", "é\ud800", [None] * 32]
VALUES += [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 4096, None] * 3  # so that about a third is counted
KEYS = sorted(KNOWN)
SIZES = (len(CONFIGS), 2, 3, *(len(KEYS), len(VALUES)) * 3)


def drawn(number: int) -> list[int]:
    """One number as a choice from each list; drawing them one by one would take most of the time."""
    choices = []
    for size in SIZES:
        number, choice = divmod(number, size)
        choices.append(choice)
    return choices


@settings(max_examples=10_000, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, math.prod(SIZES) - 1))
def test_a_mutated_config_is_counted_or_refused(number: int) -> None:
    config, is_nested, length, *changes = drawn(number)
    tokens = (1, 5000, 10**9)[length]
    changed: dict[str, Any] = dict(CONFIGS[config])
    for key, value in list(zip(changes[::2], changes[1::2], strict=True))[: 1 + number % 3]:
        changed[KEYS[key]] = VALUES[value]
    text = json.dumps({"text_config": changed} if is_nested else changed)
    try:
        model = read_config(text)
        bill = account(model, Ask(tokens, batch=3))
    except ValueError as error:
        said = str(error)
        assert said.endswith(".") and "\n" not in said and len(said) < 600
        return
    counts = [bill.bytes, growth_bytes(model, Ask(tokens)), *(row.bytes for row in bill.rows)]
    assert all(type(count) is int and count >= 0 for count in counts)
    assert model.layers <= 10_000 and bill.formula
    fitting = fit_tokens(model, Ask(1, batch=3), bill.bytes)
    assert fitting is None or fitting >= tokens

"""Ten thousand configs with fields changed, dropped and put in: whole numbers or one sentence, nothing else."""

from __future__ import annotations

import json
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
CHANGES = st.lists(st.tuples(st.sampled_from(sorted(KNOWN)), st.sampled_from(VALUES)), min_size=1, max_size=3)


@settings(max_examples=10_000, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(CONFIGS), CHANGES, st.booleans(), st.sampled_from((1, 5000, 10**9)))
def test_a_mutated_config_is_counted_or_refused(
    config: dict[str, Any], changes: list[tuple[str, Any]], is_nested: bool, tokens: int
) -> None:
    changed = {**config, **dict(changes)}
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

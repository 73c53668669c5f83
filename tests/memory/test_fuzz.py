"""Thousands of configs with fields changed, dropped and put in: whole numbers or one sentence, nothing else."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from kvviz.memory import PRESETS, Ask, account, read_config
from kvviz.memory.fields import NAMES
from kvviz.memory.inverse import fit_tokens, growth_bytes
from kvviz.memory.presets import config_of
from kvviz.memory.refusals import NOT_UNDERSTOOD
from kvviz.memory.stock import READ
from tests.memory.examples import DEEPSEEK_V4, E2B, FALCON, GEMMA_4_31B, GPT2, LINEAR, LLAMA_4
from tests.memory.stock_configs import changed, text_of, whole_config

CONFIGS = [*map(config_of, PRESETS.values()), E2B, FALCON, GEMMA_4_31B, GPT2, LLAMA_4, DEEPSEEK_V4]
KNOWN = {name for config in CONFIGS for name in config} | set(NOT_UNDERSTOOD[:4]) | set(LINEAR)
KNOWN |= {name for names in NAMES.values() for name in names}
KNOWN |= READ | {"per_layer_config", "attn_config", "indexer_types", "attention_head_type", "quantization_config"}
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
VALUES += [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 4096, None] * 3  # so that about a fifth is counted
KEYS = sorted(KNOWN)
COUNT = 6000
REAL = [
    whole_config(family)
    for family in (
        *("llama", "gemma3", "gemma4", "mistral", "mimo_v2_flash", "llama4_text", "qwen3_next", "deepseek_v32", "lfm2"),
        *("minimax", "modernbert-decoder", "gpt_neo", "falcon", "mpt", "gpt2", "bloom", "bert", "rwkv", "jamba"),
        *("granitemoehybrid", "dots1", "kimi_linear", "exaone4", "bailing_hybrid"),
    )
]


def mutated(draw: Random) -> str:
    """One of the configs with one to three of its fields changed or put in, nested or not."""
    config = dict(draw.choice(CONFIGS))
    for _ in range(draw.randint(1, 3)):
        config[draw.choice(KEYS)] = draw.choice(VALUES)
    return json.dumps({"text_config": config} if draw.random() < 0.5 else config)


def test_real_configs_with_changed_fields_are_counted_or_refused() -> None:
    """Whole configs of families of every rule: fields dropped, null, zero, one, doubled, or another sort."""
    draw = Random(1)
    counted = sum(is_counted(changed_twice(draw), draw.choice((1, 20, 10**9))) for _ in range(COUNT // 4))
    assert COUNT // 40 < counted < COUNT // 5


def changed_twice(draw: Random) -> str:
    config = changed(draw.choice(REAL), draw)
    if draw.random() < 0.5:
        part = text_of(config)
        part[draw.choice([*KEYS, *part])] = draw.choice(VALUES)
    return json.dumps(config)


def test_mutated_configs_are_counted_or_refused() -> None:
    """Drawn by a seeded generator: what fails once fails always, and drawing takes next to no time."""
    draw = Random(0)
    counted = sum(is_counted(mutated(draw), draw.choice((1, 5000, 10**9))) for _ in range(COUNT))
    assert COUNT // 8 < counted < COUNT // 2  # both ways out were taken often


def is_counted(text: str, tokens: int) -> bool:
    """Whether the config is understood; either way the answer must be of the right form."""
    try:
        model = read_config(text)
        bill = account(model, Ask(tokens, batch=3))
    except ValueError as error:
        said = str(error)
        assert said.endswith(".") and "\n" not in said and len(said) < 600, text
        return False
    counts = [bill.bytes, growth_bytes(model, Ask(tokens)), *(row.bytes for row in bill.rows)]
    assert all(type(count) is int and count >= 0 for count in counts), text
    assert model.layers <= 10_000 and bill.formula, text
    fitting = fit_tokens(model, Ask(1, batch=3), bill.bytes)
    assert fitting is None or fitting >= tokens, text
    return True

"""Formulas by hand, and coded storage against the engine that really codes."""

from __future__ import annotations

import pytest

from kvviz.choices.setup import Setup
from kvviz.memory import formulas
from kvviz.memory.account import Ask, bytes_of
from kvviz.memory.engines import ENGINES
from kvviz.memory.formats import parse_any_storage
from kvviz.memory.presets import preset
from kvviz.memory.retention import ask_for, doubts
from kvviz.memory.shape import Group, Shape, State
from kvviz.policies import parse_policy
from kvviz.run.replay import replay
from tests.tiny import some_ids, tiny

STORAGES = ["native", "int8:group=4,residual=8", "int4:group=2,residual=16", "int2:group=8,residual=8"]
POLICIES = ["full", "window:budget=5", "window:budget=8", "rolling:budget=21", "streaming:budget=9,sinks=3"]
POLICIES += ["streaming:budget=26,sinks=6", "streaming:budget=12,sinks=10", "window:budget=200"]
SCATTERED = ["h2o:budget=9,recent=4", "tova:budget=9", "random:budget=9", "snapkv:budget=9", "pyramidkv:budget=12"]


def tiny_shape(window: int | None = None) -> Shape:
    """The cache of tests.tiny's Llama, or of its Mistral with a window of 12."""
    kind = "full" if window is None else "sliding"
    return Shape("tiny", (Group(kind, (0, 1, 2), 2, 8, 8, window),), 4, 8, "float64")


def formula_bytes(policy: str, storage: str, tokens: int, window: int | None = None) -> int:
    ask = ask_for(parse_policy(policy), tiny_shape(window), tokens=tokens, storage=parse_any_storage(storage))
    return bytes_of(tiny_shape(window), ask)


def tensor_bytes(model: str, policy: str, storage: str, tokens: int) -> int:
    setup = Setup(policy=parse_policy(policy), storage=parse_any_storage(storage))
    return replay(tiny(model), some_ids(tokens).tolist(), setup, block=16).cache_bytes


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_formula_counts_what_the_tensors_hold(policy: str, storage: str) -> None:
    for tokens in (1, 7, 8, 23, 31, 40, 41, 63):
        assert formula_bytes(policy, storage, tokens) == tensor_bytes("llama", policy, storage, tokens), tokens


def test_recomputing_holds_nothing() -> None:
    assert formula_bytes("recompute:budget=4", "native", 9) == 0
    assert tensor_bytes("llama", "recompute:budget=4", "native", 9) == 0


@pytest.mark.parametrize("policy", SCATTERED)
def test_scattered_entries_are_counted_too(policy: str) -> None:
    for tokens in (8, 25, 40):
        assert formula_bytes(policy, "native", tokens) == tensor_bytes("llama", policy, "native", tokens), tokens
    assert "leaves holes" in doubts(parse_policy(policy), parse_any_storage("int4"), tiny_shape())[0]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("policy", ["full", "window:budget=5", "window:budget=50"])
def test_a_window_of_the_architecture_and_a_policy_together(policy: str, storage: str) -> None:
    for tokens in (5, 12, 13, 40):
        assert formula_bytes(policy, storage, tokens, 12) == tensor_bytes("mistral", policy, storage, tokens), tokens


@pytest.mark.parametrize("tokens", [5, 12, 13, 40])
def test_sinks_that_a_window_takes_away_are_replaced(tokens: int) -> None:
    ours = formula_bytes("streaming:budget=9,sinks=3", "native", tokens, 12)
    assert ours == tensor_bytes("mistral", "streaming:budget=9,sinks=3", "native", tokens)


def test_the_parts_of_a_linear_layer() -> None:
    """The state of a layer in float32 and, in the model's own numbers, the inputs that its convolution reads."""
    assert State(numbers=4 * 8 * 16, number_bytes=4, inputs=96, kernel=3, input_bytes=2).bytes == 2048 + 96 * 3 * 2


def test_pages_and_cells() -> None:
    assert [formulas.pages(tokens) for tokens in (1, 16, 17)] == [16, 16, 32]
    assert formulas.window_pages(10_000, 128) == 144 and formulas.window_pages(5, 128) == 16
    assert formulas.window_pages(10_000, 1) == 16
    assert formulas.window_cells(131_072, 128) == 768 and formulas.window_cells(300, 4096) == 512
    assert [formulas.padded_cells(1024, slots) for slots in (3, 4)] == [512, 256]


def test_an_engine_never_sets_aside_less_than_the_payload() -> None:
    for name in ("gemma-3-27b", "Llama-3.1-8B", "DeepSeek-V3", "Qwen3.5-27B", "gpt-oss-20b"):
        for tokens in (1, 1000, 100_001):
            payload = bytes_of(preset(name), Ask(tokens))
            assert all(engine.bytes(preset(name), Ask(tokens)) >= payload for engine in ENGINES.values())


@pytest.mark.parametrize(
    ("query", "kv", "gpus", "heads"),
    [
        (32, 8, 1, 8),
        (32, 8, 4, 2),
        (32, 8, 8, 1),
        (32, 8, 16, 1),
        (9, 3, 9, 1),
        (12, 3, 4, 2),
        (12, 3, 2, 2),
        (64, 4, 8, 1),
    ],
)
def test_kv_heads_on_the_fullest_gpu(query: int, kv: int, gpus: int, heads: int) -> None:
    assert formulas.heads_on_gpu(query, kv, gpus) == heads


def test_a_latent_is_copied_to_every_gpu() -> None:
    model = preset("DeepSeek-V3")
    assert bytes_of(model.on_each_of(8), Ask(1)) == bytes_of(model, Ask(1))
    assert bytes_of(preset("Llama-3.1-70B").on_each_of(16), Ask(1)) == 327_680 // 8
    with pytest.raises(ValueError, match="9 query heads cannot be shared evenly by 2 GPUs"):
        preset("SmolLM2-135M").on_each_of(2)


def test_the_window_of_a_hybrid_may_stay_at_sixteen_bits() -> None:
    """Known fault 128: one number format is assumed for all groups of layers."""
    model = preset("gemma-3-27b")
    sliding, full = (Shape("part", (group,), 32, 128) for group in model.groups)
    mixed = bytes_of(full, Ask(32_768, storage=parse_any_storage("q8_0"))) + bytes_of(sliding, Ask(32_768))
    assert mixed == 10 * 32_768 * 4096 * 34 // 32 + 52 * 1024 * 8192

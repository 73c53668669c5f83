"""How many fit: back from the bytes to the tokens and the sequences."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvviz.memory import PRESETS, Ask, preset
from kvviz.memory.account import bytes_of
from kvviz.memory.formats import parse_any_storage
from kvviz.memory.inverse import fit_sequences, fit_tokens, growth_bytes, peak_bytes, weight_bytes
from kvviz.memory.retention import ask_for
from kvviz.memory.shape import Group, Shape
from kvviz.policies import parse_policy


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("tokens", [1, 511, 4096, 100_003])
def test_tokens_come_back(name: str, tokens: int) -> None:
    model, ask = preset(name), Ask(tokens)
    room = bytes_of(model, ask)
    if growth_bytes(model, ask):
        assert fit_tokens(model, ask, room) == tokens
        assert fit_tokens(model, ask, room - 1) == tokens - 1
    else:
        assert fit_tokens(model, ask, room) is None
    assert fit_sequences(model, ask, 5 * room) == 5 and fit_sequences(model, ask, 5 * room - 1) == 4


def test_nothing_fits_into_nothing() -> None:
    model = preset("Llama-3.1-8B")
    assert fit_tokens(model, Ask(1), 131_071) == 0 and fit_tokens(model, Ask(1), -5) == 0
    assert fit_sequences(model, Ask(1), -5) == 0


def test_a_limited_cache_fits_at_any_length() -> None:
    model = preset("Llama-3.1-8B")
    ask = ask_for(parse_policy("window:budget=64"), model, tokens=1)
    assert fit_tokens(model, ask, 64 * 131_072) is None and fit_tokens(model, ask, 64 * 131_072 - 1) == 63
    assert fit_sequences(model, ask_for(parse_policy("recompute"), model, tokens=9), 100) is None


def test_weights_take_their_share() -> None:
    assert weight_bytes(preset("Llama-3.1-8B")) == 8_030_000_000 * 2
    room = 80 * 10**9 - weight_bytes(preset("Llama-3.1-8B"))
    tokens = fit_tokens(preset("Llama-3.1-8B"), Ask(1), room)
    assert tokens == room // 131_072 == 487_823


SMALL = Shape("small", (Group("full", (0,), 1, 8, 4),), 1, 4)
CODED = ["int8:group=1,residual=4", "int4:group=4,residual=8", "int2:group=8,residual=8", "int4:group=2,residual=16"]
LIMITS = ["full", "window:budget=7", "window:budget=19", "streaming:budget=23,sinks=3", "streaming:budget=70,sinks=5"]


@pytest.mark.parametrize("storage", CODED)
@pytest.mark.parametrize("policy", [*LIMITS, "h2o:budget=9"])
def test_the_peak_is_the_most_on_the_way(policy: str, storage: str) -> None:
    most = 0
    for tokens in range(1, 150):
        ask = ask_for(parse_policy(policy), SMALL, tokens=tokens, storage=parse_any_storage(storage))
        most = max(most, bytes_of(SMALL, ask))
        assert peak_bytes(SMALL, ask) == most, tokens


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(st.sampled_from(CODED), st.integers(1, 300), st.integers(0, 10**4))
def test_a_coded_cache_fits_up_to_the_answer_and_no_further(storage: str, tokens: int, more: int) -> None:
    ask = ask_for(parse_policy("full"), SMALL, tokens=tokens, storage=parse_any_storage(storage))
    room = bytes_of(SMALL, ask) + more
    fitting = fit_tokens(SMALL, ask, room)
    assert fitting is not None
    assert peak_bytes(SMALL, replace(ask, tokens=fitting)) <= room < peak_bytes(SMALL, replace(ask, tokens=fitting + 1))

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvviz.choices.patterns import PATTERNS
from kvviz.choices.storage import STORAGES
from kvviz.knobs import BUDGET_LIMIT, describe_knobs, parse, spell
from kvviz.policies import POLICIES, parse_policy
from kvviz.policies.random import Random
from kvviz.policies.streaming import Streaming


@given(st.integers(2, BUDGET_LIMIT), st.integers(0, 64))
def test_streaming_spells_back(budget: int, sinks: int) -> None:
    policy = Streaming(budget, min(sinks, budget - 1))
    assert parse_policy(spell(policy)) == policy


@given(st.integers(1, BUDGET_LIMIT), st.integers(0, 2**31 - 1))
def test_random_spells_back(budget: int, seed: int) -> None:
    policy = Random(budget, seed)
    assert parse_policy(spell(policy)) == policy


@pytest.mark.parametrize("registry", [POLICIES, PATTERNS, STORAGES])
def test_defaults_spell_back_and_every_choice_names_its_source(registry: dict) -> None:
    for name, cls in registry.items():
        assert parse(name, registry) == cls() == parse(spell(cls()), registry)
        assert cls.title and cls.source and cls.__doc__


@pytest.mark.parametrize("registry", [POLICIES, PATTERNS, STORAGES])
def test_every_default_lies_in_its_range(registry: dict) -> None:
    for cls in registry.values():
        for row in describe_knobs(cls):
            if "choices" in row:
                assert row["default"] in row["choices"] and row["label"]
                continue
            defaults = row["default"] if isinstance(row["default"], tuple) else (row["default"],)
            assert all(row["low"] <= default <= row["high"] for default in defaults) and row["label"]
            if isinstance(row["default"], tuple):
                with pytest.raises(ValueError, match=row["name"]):
                    cls(**{row["name"]: (row["low"] - 1,)})
                continue
            for beyond in (row["low"] - 1, row["high"] + 1):
                with pytest.raises(ValueError, match=row["name"]):
                    cls(**{row["name"]: beyond})


def test_knobs_left_out_keep_their_defaults() -> None:
    assert parse_policy("streaming:sinks=2") == Streaming(256, 2)
    assert parse_policy(" streaming : sinks=2 , budget=9 ") == Streaming(9, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("windw", ["'windw'", "did you mean 'window'", "full, window, rolling, streaming, h2o"]),
        ("", ["''", "the choices are"]),
        ("window:size=3", ["'size'", "the choices are: budget"]),
        ("window:budget=0", ["budget=0", "from 1 to"]),
        ("window:budget=-4", ["budget=-4", "from 1 to"]),
        ("window:budget=2.5", ["'2.5'", "whole number"]),
        ("window:budget=1e3", ["'1e3'", "whole number"]),
        ("window:budget=٣", ["whole number"]),
        ("window:budget=999999999999999999999", ["whole number"]),
        ("window:budget=99999999", ["out of range"]),
        ("window:budget", ["knob=value"]),
        ("window:budget=4,budget=5", ["once"]),
        ("full:budget=4", ["no knob 'budget'", "there is none to set"]),
        ("streaming:budget=4,sinks=4", ["sinks=4", "budget=4", "at most 3"]),
        ("streaming:budget=1,sinks=1", ["at most 0"]),
    ],
)
def test_bad_spelling_names_the_value_and_the_cure(text: str, words: list[str]) -> None:
    with pytest.raises(ValueError) as caught:
        parse_policy(text)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_choices_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Streaming().budget = 3  # type: ignore[misc]

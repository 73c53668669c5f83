"""Settings in the URL: what is written is read back, what is bad is named, and old addresses change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import streamlit as st
from hypothesis import given
from hypothesis import strategies as some

from kvviz.choices.experiment import Experiment
from kvviz.choices.linked_text import Text
from kvviz.choices.patterns import Causal, Sliding
from kvviz.choices.prompts import PROMPT_SETS
from kvviz.choices.setup import POSITIONS, SOFTMAXES, Setup
from kvviz.choices.texts import PRESETS
from kvviz.knobs import spell
from kvviz.measures.attention import MEASURES
from kvviz.policies.full import Full
from kvviz.policies.random import Random
from kvviz.policies.rolling import Rolling
from kvviz.policies.streaming import Streaming
from kvviz.policies.window import Window
from kvviz.ui.attention.settings import SCALES, AttentionSettings
from kvviz.ui.branches.settings import DRAFTER_WORDS, BranchesSettings
from kvviz.ui.branches.settings import PARTS as BRANCHES_PARTS
from kvviz.ui.cache.settings import PARTS, CacheSettings
from kvviz.ui.exactness.settings import LONGEST_EDIT, ExactnessSettings
from kvviz.ui.exactness.settings import PARTS as EXACT_PARTS
from kvviz.ui.memory.settings import MemorySettings
from kvviz.ui.precision.settings import PARTS as PRECISION_PARTS
from kvviz.ui.precision.settings import PrecisionSettings
from kvviz.ui.prefixes.settings import PARTS as PREFIXES_PARTS
from kvviz.ui.prefixes.settings import PrefixesSettings
from kvviz.ui.quality.settings import (
    ADDED_LIMIT,
    LENGTHS,
    STREAM_LEAST,
    STREAM_TOKENS,
    STREAM_WORDS,
    TASK_WORDS,
    QualitySettings,
)
from kvviz.ui.receptive_field.settings import MEASURED, ReachSettings
from kvviz.ui.shell import address as address_bar
from kvviz.ui.shell import state
from kvviz.ui.shell.settings import PASTE
from kvviz.ui.shell.state import View, view_from_query
from kvviz.ui.sinks.settings import SinksSettings
from kvviz.ui.speed.settings import PARTS as SPEED_PARTS
from kvviz.ui.speed.settings import SpeedSettings

budgets = some.integers(1, 2**20)
policies = some.one_of(
    some.just(Full()),
    some.builds(Window, budgets),
    some.builds(Rolling, budgets),
    some.builds(Random, budgets, some.integers(0, 2**31 - 1)),
    some.integers(0, 64).flatmap(lambda s: some.builds(Streaming, some.integers(s + 1, 2**20), some.just(s))),
)
setups = some.builds(
    Setup,
    policy=policies,
    pattern=some.one_of(some.just(Causal()), some.builds(Sliding, some.integers(1, 4096))),
    positions=some.sampled_from(POSITIONS),
    softmax=some.sampled_from(SOFTMAXES),
)
texts = some.one_of(
    some.sampled_from(list(PRESETS)).map(Text.of_preset),
    some.text(some.characters(exclude_categories=["Cs"]), min_size=1, max_size=200).map(Text),
)
own = some.tuples(
    some.builds(AttentionSettings, some.sampled_from([*SCALES]), some.sampled_from([*MEASURES])),
    some.builds(SinksSettings, some.integers(1, 8)),
    some.builds(ReachSettings, some.sampled_from([*MEASURED]), some.none() | some.integers(0, 8192)),
    some.builds(CacheSettings, some.sampled_from([*PARTS])),
    some.builds(MemorySettings, tokens=some.integers(1, 10**9), parameters=some.none() | some.integers(0, 10**9)),
    some.builds(
        QualitySettings,
        added=some.lists(policies, max_size=ADDED_LIMIT).map(lambda found: "; ".join(map(spell, found))),
        stream_text=some.sampled_from([*STREAM_WORDS]),
        stream_tokens=some.integers(STREAM_LEAST, STREAM_TOKENS),
        every=some.booleans(),
        predicted=some.none() | some.integers(1, 8192),
        task=some.sampled_from([*TASK_WORDS]),
        lengths=some.sampled_from(LENGTHS),
        seeds=some.integers(1, 4),
    ),
    some.builds(
        SpeedSettings,
        part=some.sampled_from([*SPEED_PARTS]),
        tokens=some.integers(64, 2048),
        prompt=some.integers(64, 2048),
        new=some.integers(2, 256),
        repeats=some.integers(1, 9),
    ),
    some.builds(
        PrecisionSettings,
        part=some.sampled_from([*PRECISION_PARTS]),
        group=some.integers(1, 1024),
        residual=some.integers(1, 2048),
        channel=some.none() | some.integers(0, 1023),
    ),
    some.builds(
        ExactnessSettings,
        part=some.sampled_from([*EXACT_PARTS]),
        prefix=some.booleans(),
        replaced=some.none() | some.integers(0, 8192),
        adapter=some.integers(0, 100),
        edit=some.text(some.characters(exclude_categories=["Cs"]), max_size=LONGEST_EDIT),
        step=some.none() | some.integers(0, 8192),
        budget=some.integers(2, 1024),
    ),
    some.builds(
        BranchesSettings,
        part=some.sampled_from([*BRANCHES_PARTS]),
        drafter=some.sampled_from([*DRAFTER_WORDS]),
        width=some.integers(1, 16),
        step=some.none() | some.integers(0, 128),
    ),
    some.builds(
        PrefixesSettings,
        part=some.sampled_from([*PREFIXES_PARTS]),
        chosen=some.sampled_from([*PROMPT_SETS]),
        block=some.integers(1, 256),
        limit=some.integers(0, 10_000),
        forks=some.booleans(),
        prompt=some.none() | some.integers(2, 8),
    ),
)
views = some.builds(
    View,
    some.builds(
        Experiment, setups, texts, tokens=some.integers(1, 8192), prompt_tokens=some.none() | some.integers(1, 8192)
    ),
    setups,
    layer=some.integers(0, 511),
    head=some.integers(0, 511),
    query=some.none() | some.integers(0, 8192),
    own=own,
)


@given(views)
def test_a_view_written_as_an_address_is_read_back(view: View) -> None:
    assert view_from_query(view.words()) == (view, [])


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"layer": "-1"}, "layer='-1' must be a whole number from 0 to 511"),
        ({"head": "1.5"}, "head='1.5' must be a whole number"),
        ({"scale": "pink"}, "There is no scale 'pink'"),
        ({"policy": "windw"}, "did you mean 'window'"),
        ({"b_policy": "window:budget=0"}, "budget=0 is out of range"),
        ({"tokens": "99999999999999999999"}, "must be a whole number from 1 to"),
        ({"model": "../../etc"}, "The model '../../etc' is not among the choices"),
        ({"dtype": "bfloat16"}, "This link was made with numbers in bfloat16; this server computes in float32"),
        ({"dtype": "int3"}, "There is no dtype 'int3'"),
        ({"setups": "h2o:budget=64; windw"}, "did you mean 'window'"),
        ({"stream_tokens": "5000"}, "This server reads at most 2,048 tokens of a stream, not 5,000"),
        ({"needle_tokens": "300"}, "There is no needle_tokens '300'"),
        ({"text": "z:broken"}, "The text in this link is damaged"),
        ({"text": "sha256:" + "0" * 64}, "paste or upload that text"),
    ],
)
def test_a_bad_value_is_named_and_the_rest_is_kept(
    query: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVVIZ_DEVICE", "cpu")
    view, notes = view_from_query({"tokens": "33", "layer": "5", **query})
    assert len(notes) == 1 and said in notes[0]
    assert view.experiment.tokens == 33 or "tokens" in query
    assert view.layer == 5 or "layer" in query


class Session(dict[str, Any]):
    """A stand-in for ``st.session_state``."""


class Address(dict[str, str]):
    """A stand-in for ``st.query_params``."""

    def from_dict(self, query: dict[str, str]) -> None:
        self.clear()
        self.update(query)


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Session, Address]]:
    session, address = Session(), Address()
    monkeypatch.setattr(st, "session_state", session)
    monkeypatch.setattr(st, "query_params", address)
    yield session, address


def arrive(address: Address, query: dict[str, str]) -> None:
    address.from_dict(query)
    address_bar.take_url("Cache")


def test_a_link_is_adopted_and_a_change_of_address_too(visit: tuple[Session, Address]) -> None:
    session, address = visit
    arrive(address, {"tokens": "77"})
    assert session["settings"]["s.tokens"] == 77 == session["s.tokens"]
    address_bar.write_url(View(Experiment(View().experiment.setup, tokens=77)))
    arrive(address, {"tokens": "50"})  # Back, or another link
    assert session["s.tokens"] == 50


def test_an_old_address_does_not_undo_what_a_widget_just_changed(visit: tuple[Session, Address]) -> None:
    """The browser sends the address it has; it may be older than our last one while widgets change quickly."""
    session, address = visit
    arrive(address, {"tokens": "77"})
    session["written"] = {"tokens": "78"}  # we wrote it, the browser has not heard of it yet
    session["s.tokens"] = 79  # and the reader has changed the field again
    arrive(address, {"tokens": "77"})
    assert session["s.tokens"] == 79


def test_back_counts_after_a_button_that_set_the_widgets(visit: tuple[Session, Address]) -> None:
    """Such a button says that this run is its own; the next run is not."""
    session, address = visit
    arrive(address, {"tokens": "77"})
    state.adopt(View(Experiment(View().experiment.setup, tokens=78)))
    session["chosen"] = True
    arrive(address, {"tokens": "77"})
    assert session["s.tokens"] == 78
    address_bar.write_url(View(Experiment(View().experiment.setup, tokens=78)))
    arrive(address, {"tokens": "77"})
    assert session["s.tokens"] == 77


def test_a_bare_first_address_stays_bare(visit: tuple[Session, Address]) -> None:
    _, address = visit
    arrive(address, {})
    address_bar.write_url(View(Experiment(View().experiment.setup, dtype="float32")))
    assert address == {}


def test_the_text_of_a_hash_is_asked_for_where_it_can_be_pasted(visit: tuple[Session, Address]) -> None:
    session, address = visit
    arrive(address, {"text": "sha256:" + "0" * 64})
    assert session["s.text"] == PASTE and "paste or upload that text" in session["asked"]

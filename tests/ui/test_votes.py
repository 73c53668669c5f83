"""Votes on the Cache page: what SnapKV counted, before and after pooling."""

from __future__ import annotations

import numpy as np
import pytest

from kvviz.choices.linked_text import Text
from kvviz.choices.setup import parse_setup
from kvviz.models import DEFAULT_MODEL
from kvviz.run.replay import replay
from kvviz.ui.cache.votes import figure, vote_of, vote_words
from kvviz.ui.shell import runs
from kvviz.ui.shell.runs import Run
from tests.tiny import some_ids, tiny

PROMPT = 30


def run_of(policy: str) -> Run:
    maps, ids = [(1, head) for head in range(4)], some_ids(40).tolist()
    trace = replay(tiny("llama"), ids, parse_setup({"policy": policy}), prompt_tokens=PROMPT, maps=maps)
    names = [str(position) for position in range(40)]
    return Run(trace, names, names, 0, ())


@pytest.mark.parametrize("policy", ["snapkv:budget=12,observe=4,kernel=3", "pyramidkv:budget=12,observe=4,pooling=max"])
def test_the_votes_are_those_by_which_the_run_chose(policy: str) -> None:
    run = run_of(policy)
    for head in range(2):
        vote = vote_of(run, 1, head)
        assert vote is not None
        assert np.flatnonzero(vote.kept).tolist() == run.trace.kept(1, head, PROMPT - 1).tolist()
        rows = np.mean([run.trace.maps[1, query][26:30, :26] for query in (2 * head, 2 * head + 1)], axis=0)
        assert vote.votes[:26] == pytest.approx(rows.sum(0), abs=1e-6) and np.isnan(vote.votes[26:]).all()


def test_without_pooling_both_are_one() -> None:
    vote = vote_of(run_of("snapkv:budget=12,observe=4,kernel=1"), 1, 0)
    assert vote is not None and vote.exchanged == 0 and vote.ranked == 8
    assert vote.votes == pytest.approx(vote.scores, nan_ok=True)


@pytest.mark.parametrize("policy", ["window:budget=9", "knorm:budget=9", "snapkv:budget=36,observe=4", "full"])
def test_who_does_not_pool_or_drops_nothing_has_no_votes(policy: str) -> None:
    assert vote_of(run_of(policy), 1, 0) is None


@pytest.mark.real
def test_pooling_changes_the_set_that_smollm2_keeps() -> None:
    """Story of 128 tokens, prompt of 112, layer 14, KV head 1: the numbers that the page says."""
    loaded = runs.loaded_model(DEFAULT_MODEL)
    ids = runs.token_ids(DEFAULT_MODEL, Text.of_preset("story").content)[:128]
    setup, maps = parse_setup({"policy": "snapkv:budget=32,observe=8"}), [(14, head) for head in range(9)]
    trace = replay(loaded.model, ids, setup, prompt_tokens=112, maps=maps)
    names = [str(position) for position in range(128)]
    run = Run(trace, names, names, 0, ())
    vote = vote_of(run, 14, 1)
    assert vote is not None
    assert np.flatnonzero(vote.kept).tolist() == trace.kept(14, 1, 111).tolist()
    winners = set(np.argsort(-np.nan_to_num(vote.votes), kind="stable")[:24].tolist())
    assert len(set(np.flatnonzero(vote.kept[:104]).tolist()) - winners) == vote.exchanged == 7 and vote.ranked == 24
    assert "7 of the 24 are there because of it" in vote_words(vote, "A, layer 14, KV head 1")
    drawing = figure(run, vote.scores, vote.kept, vote.kept, "a", "Votes after pooling")
    assert "32 of 112 tokens kept when the prompt ended" in drawing.alt and "the cut is at" in drawing.alt

"""Scores on the Cache page: the sources' example, and sums read off the maps."""

from __future__ import annotations

import numpy as np
import pytest

from kvviz.choices.setup import parse_setup
from kvviz.run.replay import replay
from kvviz.ui.cache.scores import age_words, example_kept, heavy_position, received
from kvviz.ui.shell.runs import Run
from tests.tiny import some_ids, tiny


def run_of(policy: str) -> Run:
    places = [(1, head) for head in range(4)]
    trace = replay(tiny("llama"), some_ids(40).tolist(), parse_setup({"policy": policy}), measure=True, maps=places)
    names = [str(position) for position in range(40)]
    return Run(trace, names, names, 0, ())


def test_the_sources_example_keeps_2_5_7_and_8() -> None:
    assert (np.flatnonzero(example_kept(4)) + 1).tolist() == [2, 5, 7, 8]


def test_what_a_token_received_is_the_sum_of_its_column() -> None:
    run = run_of("h2o:budget=9,recent=3")
    columns = [np.nansum(run.trace.maps[1, head], axis=0) for head in (2, 3)]  # the query heads of KV head 1
    assert received(run, 1, 1) == pytest.approx(np.mean(columns, axis=0), abs=1e-5)


def test_raw_sums_hold_older_tokens_than_normalised_ones() -> None:
    raw, fair = run_of("h2o:budget=12,recent=3"), run_of("h2o:budget=12,recent=3,normalise=1")
    old, young = heavy_position(raw), heavy_position(fair)
    assert old is not None and young is not None and old < young
    assert f"{old:.0f} under A, {young:.0f} under B" in age_words(raw, fair)
    assert age_words(run_of("full"), run_of("window:budget=4")) == ""

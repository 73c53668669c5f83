from __future__ import annotations

import numpy as np
import pytest

from kvviz.choices.setup import parse_setup
from kvviz.measures.sinks import growth, mean_known, sink_mass_along, sink_share
from kvviz.run.replay import replay
from tests.tiny import some_ids, tiny

# one layer, two heads, three queries, weights on the first two positions
FIRST = np.array([[[[1, 0], [0.5, 0.25], [0.25, 0.25]], [[1, 0], [0, 1], [0.5, 0]]]])


def test_shares_are_means_over_the_late_queries_by_hand() -> None:
    assert sink_share(FIRST, 1, 1)[0] == pytest.approx([(0.5 + 0.25) / 2, (0 + 0.5) / 2])
    assert sink_share(FIRST, 2, 1)[0] == pytest.approx([(0.75 + 0.5) / 2, (1 + 0.5) / 2])
    assert sink_share(FIRST, 2, 9)[0] == pytest.approx([0.5, 0.5])  # none so late: the last one


def test_mass_along_the_text_is_the_mean_over_heads() -> None:
    assert sink_mass_along(FIRST, 2, 0) == pytest.approx([1, (0.75 + 1) / 2, 0.5])


def test_what_was_not_computed_is_left_out() -> None:
    assert mean_known(np.array([[1.0, np.nan], [np.nan, np.nan]])) == pytest.approx([1, np.nan], nan_ok=True)


def test_others_grow_by_what_left_row_by_row() -> None:
    assert growth(FIRST[0], 1, 1) == pytest.approx([2, 4 / 3, 1, 2])
    assert growth(FIRST[0], 2, 9) == pytest.approx([2, 2])  # none so late: the last one
    assert growth(FIRST[0], 2, 0) == pytest.approx([2, 2])  # before, all a query sees are sinks
    assert growth(np.ones((1, 3, 1), dtype=np.float32), 1, 1) == pytest.approx([1e7, 1e7])
    assert len(growth(np.ones((1, 1, 1)), 4, 0)) == 0


@pytest.mark.parametrize("policy", ["full", "window:budget=7", "h2o:budget=9,recent=3"])
def test_kept_weights_are_those_of_the_map(policy: str) -> None:
    trace = replay(tiny("llama"), some_ids(30).tolist(), parse_setup({"policy": policy}), measure=True, maps=[(1, 2)])
    assert trace.first_weights is not None
    by_map = np.nan_to_num(trace.maps[1, 2][:, :8])
    assert trace.first_weights[1, 2] == pytest.approx(by_map, abs=1e-7)


def test_the_share_is_that_of_the_denominator() -> None:
    """Weights renormalised by hand without the first two keys grow by 1 / (1 − share)."""
    scores = np.array([2.0, 1.0, 0.5, -1.0])
    weights = np.exp(scores) / np.exp(scores).sum()
    without = np.exp(scores[2:]) / np.exp(scores[2:]).sum()
    (factor,) = growth(weights[None, None, :2].repeat(3, 1), 2, 2)
    assert without / weights[2:] == pytest.approx(factor)

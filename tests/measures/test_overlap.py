from __future__ import annotations

import numpy as np
import pytest

from kvviz.measures.overlap import mean_map, overlap_of_heads, overlap_of_kept, overlap_with_previous, strongest

NAN = np.nan
MAP = np.array(
    [
        [1.0, NAN, NAN, NAN],
        [0.6, 0.4, NAN, NAN],
        [0.5, 0.1, 0.4, NAN],
        [0.1, 0.5, 0.1, 0.3],
    ]
)


def test_the_strongest_keys_leave_out_what_is_not_seen_and_prefer_the_older_of_equals() -> None:
    assert strongest(MAP, 2)[0].tolist() == [True, False, False, False]
    assert strongest(np.array([0.2, 0.3, 0.2, 0.3]), 3).tolist() == [True, True, False, True]


def test_overlap_with_the_query_before_by_hand() -> None:
    """Top two: {0}, {0, 1}, {0, 2}, {1, 3}. In common with the one before: 1 of 1, 1 of 2, 0 of 2."""
    assert overlap_with_previous(MAP, 2) == pytest.approx([NAN, 1, 0.5, 0], nan_ok=True)


def test_one_token_has_nothing_before_it() -> None:
    assert np.isnan(overlap_with_previous(np.array([[1.0]]), 4)).all()


def test_equal_weights_agree_on_the_oldest_keys() -> None:
    flat = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
    flat[np.triu_indices(5, 1)] = NAN
    assert overlap_with_previous(flat, 2)[1:].tolist() == [1, 1, 1, 1]


def test_overlap_of_heads_by_hand() -> None:
    rows = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [NAN, NAN, 1.0]])
    assert overlap_of_heads(rows, 2) == pytest.approx(np.array([[1, 0.5, 0], [0.5, 1, 1], [0, 1, 1]]))


def test_the_mean_of_maps_sums_to_one_where_heads_see_different_keys() -> None:
    one, other = np.array([[0.25, 0.75, NAN, NAN]]), np.array([[NAN, 0.5, 0.5, NAN]])
    mean = mean_map([one, other])
    assert mean[0, :3].tolist() == [0.125, 0.625, 0.25] and np.isnan(mean[0, 3])


def test_kept_alike_by_hand() -> None:
    """Layer 0: {0, 3} and {1, 3} have one of two in common; layer 1: both hold {2, 3}; 4 = still held at the end."""
    evicted_at = np.array([[[4, 1, 2, 4], [2, 4, 2, 4]], [[2, 2, 4, 4], [2, 2, 4, 4]]])
    assert overlap_of_kept(evicted_at).tolist() == [0.5, 1.0]
    assert np.isnan(overlap_of_kept(evicted_at[:, :1])).all()

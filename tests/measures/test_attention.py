"""The measures by hand: two queries of one head over three slots."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from kvviz.measures.attention import MEASURES, entropy, first_weights, mean_distance, recent_mass, sink_mass

WEIGHTS = torch.tensor([[[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]], dtype=torch.float64)  # one head, two queries
POSITIONS = torch.tensor([[[0, 4, 6]]])
QUERIES = torch.tensor([6, 7])


def test_sink_mass_counts_the_first_positions_of_the_text_not_the_first_slots() -> None:
    assert sink_mass(WEIGHTS, POSITIONS, 4).tolist() == [[0.5, 0.0]]
    assert sink_mass(WEIGHTS, POSITIONS, 5).tolist() == [[0.75, 0.0]]


def test_entropy_is_in_nats_and_zero_when_one_slot_gets_all() -> None:
    by_hand = -(0.5 * math.log(0.5) + 2 * 0.25 * math.log(0.25))
    assert entropy(WEIGHTS).tolist() == [[pytest.approx(by_hand), 0.0]]


def test_mean_distance_is_in_positions() -> None:
    assert mean_distance(WEIGHTS, POSITIONS, QUERIES).tolist() == [[0.5 * 6 + 0.25 * 2 + 0, 1.0]]


def test_mean_distance_does_not_shrink_when_a_row_abstains() -> None:
    assert torch.allclose(mean_distance(WEIGHTS / 2, POSITIONS, QUERIES), mean_distance(WEIGHTS, POSITIONS, QUERIES))


def test_recent_mass_counts_back_from_each_query() -> None:
    assert recent_mass(WEIGHTS, POSITIONS, QUERIES, 2).tolist() == [[0.25, 1.0]]  # query 7 sees position 6 as recent
    assert recent_mass(WEIGHTS, POSITIONS, QUERIES, 3).tolist() == [[0.5, 1.0]]


def test_first_weights_lie_at_their_positions() -> None:
    """Slots hold positions 0, 4 and 6: of the first five positions, 0 and 4 are there."""
    assert first_weights(WEIGHTS, POSITIONS[0], 5).tolist() == [[[0.5, 0, 0, 0, 0.25], [0, 0, 0, 0, 0]]]
    assert first_weights(WEIGHTS[..., :2], POSITIONS[0, :, :2], 5).shape == (1, 2, 5)  # fewer slots than asked for


def test_every_measure_is_a_share_of_the_most_it_can_be() -> None:
    """Uniform attention has the largest entropy; attention on the first token alone the largest distance."""
    queries = np.array([1.0, 3.0])
    assert MEASURES["entropy"].shares(np.log([2, 4]), queries) == pytest.approx([1, 1])
    assert MEASURES["mean_distance"].shares(np.array([0.5, 3]), queries) == pytest.approx([0.5, 1])
    for name in ("sink_mass", "recent_mass"):
        assert MEASURES[name].shares(np.array([0.25, 1]), queries) == pytest.approx([0.25, 1])
    assert MEASURES["mean_distance"].shares(np.array([0.0]), np.array([0.0])) == 0  # the first query sees itself alone

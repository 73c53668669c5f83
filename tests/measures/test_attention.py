from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from kvviz.measures.attention import (
    AttentionRecorder,
    entropy,
    first_weights,
    mean_distance,
    recent_mass,
    sink_mass,
)

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


def test_the_recorder_puts_slots_back_on_their_positions() -> None:
    recorder = AttentionRecorder(1, 2, 8, maps=[(0, 1)])
    weights = torch.stack([WEIGHTS[0], WEIGHTS[0].flip(1)])  # two query heads of one KV head
    visible = torch.tensor([[[True, True, True], [False, True, True]]])
    recorder.record(0, weights, POSITIONS[0], visible, QUERIES)
    row = recorder.maps[0, 1][6]
    assert row[[0, 4, 6]].tolist() == [0.25, 0.25, 0.5] and np.isnan(row[[1, 2, 3, 5, 7]]).all()
    assert np.isnan(recorder.maps[0, 1][7, 0])  # not seen is blank, not zero
    assert recorder.received[0, 0].tolist() == [0.5, 0, 0, 0, 0.25, 0, 1.25, 0]
    recorder.record(0, weights, POSITIONS[0], visible, QUERIES)
    assert recorder.received[0, 0, 6] == 2.5  # what a key received adds up over blocks


def test_a_map_of_a_head_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no layer 1, head 0: this model has layers 0–0 and query heads 0–8"):
        AttentionRecorder(1, 9, 4, maps=[(1, 0)])


def test_recent_mass_counts_back_from_each_query() -> None:
    assert recent_mass(WEIGHTS, POSITIONS, QUERIES, 2).tolist() == [[0.25, 1.0]]  # query 7 sees position 6 as recent
    assert recent_mass(WEIGHTS, POSITIONS, QUERIES, 3).tolist() == [[0.5, 1.0]]


def test_first_weights_lie_at_their_positions() -> None:
    """Slots hold positions 0, 4 and 6: of the first five positions, 0 and 4 are there."""
    assert first_weights(WEIGHTS, POSITIONS[0], 5).tolist() == [[[0.5, 0, 0, 0, 0.25], [0, 0, 0, 0, 0]]]
    assert first_weights(WEIGHTS[..., :2], POSITIONS[0, :, :2], 5).shape == (1, 2, 5)  # fewer slots than asked for


def test_norms_are_those_of_the_entries_when_they_come() -> None:
    recorder = AttentionRecorder(1, 4, 3, kv_heads=2)
    key = torch.tensor([[[3.0, 4.0]], [[0.0, 2.0]]])
    recorder.enter(0, key, 2 * key, torch.tensor([1]))
    assert recorder.key_norm[0, :, 1].tolist() == [5, 2] and recorder.value_norm[0, :, 1].tolist() == [10, 4]
    assert np.isnan(recorder.key_norm[0, :, [0, 2]]).all()

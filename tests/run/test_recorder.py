"""What the recorder takes of a pass, at the right places."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kvviz.run.recorder import AttentionRecorder
from tests.measures.test_attention import POSITIONS, QUERIES, WEIGHTS


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


def test_norms_are_those_of_the_entries_when_they_come() -> None:
    recorder = AttentionRecorder(1, 4, 3, kv_heads=2)
    key = torch.tensor([[[3.0, 4.0]], [[0.0, 2.0]]])
    recorder.enter(0, key, 2 * key, torch.tensor([1]))
    assert recorder.key_norm[0, :, 1].tolist() == [5, 2] and recorder.value_norm[0, :, 1].tolist() == [10, 4]
    assert np.isnan(recorder.key_norm[0, :, [0, 2]]).all()

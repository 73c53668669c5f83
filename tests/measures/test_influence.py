"""Arithmetic of influence by hand: shares, rollout, the strongest relay."""

import numpy as np
import pytest
import torch

from kvviz.measures.influence import beyond, by_distance, hop, mixing, nearest, relay, shares


def test_rows_become_shares_and_a_row_of_zeros_stays():
    rows = shares(torch.tensor([[1.0, 3.0], [0.0, 0.0]]))
    assert rows.tolist() == [[0.25, 0.75], [0.0, 0.0]]


def test_a_layer_mixes_half_by_attention_and_half_stays():
    heads = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    assert mixing(heads).tolist() == [[1.0, 0.0], [0.25, 0.75]]
    abstains = torch.tensor([[[0.5, 0.0], [0.0, 0.0]]])  # off by one: rows may sum to less
    assert mixing(abstains).sum(-1).tolist() == [1.0, 1.0]


def test_the_strongest_relay_goes_4_6_8():
    """Window 3 over two layers: 8 cannot see 4, but 6 can, and 8 sees 6. Counted from 1 as in the sources."""
    place = torch.arange(9)
    window = ((place[:, None] - place < 3) & (place <= place[:, None])).double()
    mix = mixing((window / window.sum(-1, keepdim=True))[None])
    top = torch.zeros(9, dtype=torch.float64)
    top[8] = 1
    middle, from_middle = hop(top.log(), mix.log())
    bottom, from_bottom = hop(middle, mix.log())
    came_from = np.stack([from_bottom.numpy(), from_middle.numpy()])
    assert relay(came_from, 8, 4) == [4, 6, 8]
    assert bottom[4].exp().item() == pytest.approx(1 / 6 * 1 / 6)
    assert relay(came_from, 8, 8) == [8, 8, 8] and bottom[3] == -torch.inf


def test_the_nearest_positions_that_hold_a_part():
    row = np.array([0.0, 0.1, 0.0, 0.3, 0.6])
    assert nearest(row, 0.6) == 1 and nearest(row, 0.9) == 2 and nearest(row, 0.99) == 4
    assert nearest(np.array([1.0])) == 1
    assert by_distance(row).tolist() == [0.6, 0.3, 0.0, 0.1, 0.0]
    assert beyond(row, np.array([False, False, True, True, True])) == pytest.approx(0.1)

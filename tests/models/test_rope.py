from __future__ import annotations

import torch

from kvviz.models.rope import Rope
from kvviz.run.rotation import ropes_of
from tests.tiny import tiny


def test_a_quarter_turn_by_hand() -> None:
    rope = Rope(torch.tensor([torch.pi / 2], dtype=torch.float64))
    moved = rope.moved(torch.tensor([1.0, 0.0], dtype=torch.float64), torch.tensor(1))
    assert torch.allclose(moved, torch.tensor([0.0, 1.0], dtype=torch.float64), atol=1e-15)


def test_moving_composes_and_undoes_itself() -> None:
    rope = ropes_of(tiny("llama"))[0]
    keys = torch.randn(5, 8, dtype=torch.float64)
    there = rope.moved(rope.moved(keys, torch.tensor([3] * 5)), torch.tensor([4] * 5))
    assert torch.allclose(there, rope.moved(keys, torch.tensor([7] * 5)), atol=1e-12)
    assert torch.allclose(rope.moved(there, torch.tensor([-7] * 5)), keys, atol=1e-12)


def test_only_the_rotary_part_moves() -> None:
    rope = ropes_of(tiny("gpt_neox"))[0]
    assert len(rope.inv_freq) == 2  # head size 8, half of it rotary
    keys = torch.randn(1, 8, dtype=torch.float64)
    moved = rope.moved(keys, torch.tensor([5]))
    assert torch.equal(moved[:, 4:], keys[:, 4:]) and not torch.equal(moved[:, :4], keys[:, :4])


def test_interleaved_channels_turn_with_their_neighbours() -> None:
    rope = Rope(torch.tensor([torch.pi / 2], dtype=torch.float64), start=1, interleaved=True)
    keys = torch.tensor([5.0, 1.0, 0.0, 7.0], dtype=torch.float64)
    assert torch.allclose(rope.moved(keys, torch.tensor(1)), torch.tensor([5.0, 0.0, 1.0, 7.0], dtype=torch.float64))


def test_without_frequencies_nothing_moves() -> None:
    keys = torch.randn(2, 1, 8)
    assert torch.equal(Rope(torch.empty(0)).moved(keys, torch.tensor([[1, 2, 3]] * 2)), keys.expand(2, 3, 8))

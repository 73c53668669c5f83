"""The blocks of a run: every token once, and a block of its own for the queries whose attention decides."""

from __future__ import annotations

import pytest
import torch

from kvviz.choices.setup import parse_setup
from kvviz.run.replay import parts

SNAPKV, H2O = ({"policy": f"{word}"} for word in ("snapkv:budget=20,observe=8", "h2o:budget=20"))


@pytest.mark.parametrize(
    ("words", "prompt", "starts"),
    [
        (H2O, 50, [0, 32, 64, 96]),
        (SNAPKV, 50, [0, 32, 42, 64, 96]),  # 50 − 8
        (SNAPKV, 40, [0, 32, 64, 96]),  # there is a block already
        (SNAPKV, 6, [0, 32, 64, 96]),  # a prompt shorter than the observation window
    ],
)
def test_a_block_begins_with_the_voters(words: dict[str, str], prompt: int, starts: list[int]) -> None:
    found = list(parts(torch.arange(100), 32, parse_setup(words), prompt))
    assert [start for start, _ in found] == starts
    assert torch.cat([part for _, part in found]).tolist() == list(range(100))

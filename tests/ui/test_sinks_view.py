"""Sentences of the Sinks page, on numbers made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kvviz.board import Outcome, rows_of
from kvviz.ui.board_view import board_budget, board_words
from kvviz.ui.sinks_view import sentence_words, shown_layers
from kvviz.ui.state import View


def outcomes(*losses: float) -> list[Outcome]:
    return [Outcome(name, setup, loss, 0) for (name, setup, _), loss in zip(rows_of(64, 4), losses, strict=True)]


def test_the_board_states_what_was_seen() -> None:
    said = board_words(outcomes(3.0, 4.0, 3.2, 3.25, 3.01, 3.5), "Model", 4)
    assert "a window of 64 costs +1 nats" in said and "costs +0.2" in said
    assert "repairs 75% of the damage, so it is mostly their place" in said and "-0.5 with the window" in said
    assert "not only their place" in board_words(outcomes(3.0, 4.0, 3.2, 3.9, 3, 4), "Model", 4)
    assert "hardly matters here (+0.010 nats)" in board_words(outcomes(3.0, 3.01, 3, 3, 3, 3), "Model", 4)


@pytest.mark.parametrize(("layers", "chosen"), [(30, 14), (30, 0), (30, 29), (2, 1), (1, 0), (6, 3)])
def test_at_most_six_layers_are_shown_the_chosen_one_and_the_ends_among_them(layers: int, chosen: int) -> None:
    shown = shown_layers(layers, chosen)
    assert {0, layers - 1, chosen} <= set(shown) and len(shown) <= 6 and shown == sorted(shown)
    assert all(0 <= layer < layers for layer in shown)


def test_the_average_says_which_layers_sink() -> None:
    maps = np.zeros((3, 16, 16))
    maps[:2, -1, -4:] = 0.25
    maps[2, -1, 0] = 1
    said = sentence_words(maps, 64)
    assert "100% to the four latest tokens and 0% to the first one" in said and "1 of 3 layers (layers 2 to 2)" in said


def test_the_board_takes_the_budget_at_hand() -> None:
    assert board_budget(View(), 256) == 64
    assert board_budget(View(), 40) == 10  # none fits: a quarter of the text

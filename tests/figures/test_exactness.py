"""Gaps, changed entries, masks and angles: what is drawn where."""

from __future__ import annotations

import numpy as np
import pytest

from kvviz.figures.exactness import FLOOR, GapLine, angle_map, change_map, gap_lines, mask_map
from kvviz.figures.weights import way_bars


def test_gaps_lie_at_their_tokens_and_a_cross_where_the_answer_breaks() -> None:
    lines = [GapLine("same", "a", np.array([0.0, 1e-5, 2e-5])), GapLine("broken", "b", np.array([0.1, 1.0, 0.5]), 1)]
    drawing = gap_lines(lines, 100, 2e-4)
    same, broken, cross = drawing.figure.data
    assert list(same.x) == [100, 101, 102] and list(same.y) == [FLOOR, 1e-5, 2e-5]
    assert list(broken.y) == [0.1, 1.0, 0.5] and (list(cross.x), list(cross.y)) == ([101], [1.0])
    assert drawing.figure.layout.shapes[0].y0 == 2e-4 and drawing.figure.layout.yaxis.type == "log"
    assert "same: at most 2e-05; broken: at most 1." in drawing.alt
    assert next(iter(drawing.table.rows())) == ["100", "0.0", "0.1"]  # as it was measured


def test_an_unchanged_entry_is_blank() -> None:
    drawing = change_map(np.array([[0.0, 1.0, 0.0], [0.0, 1e-6, 1e-3]]), ["0 a", "1 b", "2 c"])
    shade = drawing.figure.data[0].z
    assert np.isnan(shade[:, 0]).all() and np.isnan(shade[0, 2])
    assert shade[0, 1] == 1 and shade[1, 1] == 0 and shade[1, 2] == pytest.approx(0.5)
    assert "3 entries of 6 changed" in drawing.alt


def test_the_corner_mask_hides_what_the_right_one_shows() -> None:
    right, corner = np.tri(2, 5, 3, dtype=bool), np.tri(2, 5, dtype=bool)
    drawing = mask_map(corner, right, 3)
    assert drawing.figure.data[0].z.tolist() == [[1, 2, 2, 2, 0], [1, 1, 2, 2, 2]]
    assert "6 of 9 valid pairs hidden" in drawing.alt
    assert "0 of 9 valid pairs hidden" in mask_map(right, right, 3).alt


def test_angles_are_shown_within_half_a_turn() -> None:
    drawing = angle_map(np.array([[0.0, 0.0], [-3 * np.pi / 2, -0.1]]), ["0 a", "9 b"])
    np.testing.assert_allclose(drawing.figure.data[0].z, [[0, 90], [0, -5.7296]], atol=1e-3)
    assert "1 of 2 keys are turned" in drawing.alt


def test_bars_of_every_way_on_the_same_keys() -> None:
    drawing = way_bars(["0 a", "3 b"], {"full": np.array([0.9, 0.1]), "removed": np.array([0.0, 1.0])}, ["a", "b"])
    assert [list(bar.y) for bar in drawing.figure.data] == [[0.9, 0.1], [0.0, 1.0]]
    assert "full at most 0.9; removed at most 1." in drawing.alt

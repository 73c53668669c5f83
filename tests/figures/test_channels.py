"""Channels and groups: which are marked, and what the codes stand for."""

from __future__ import annotations

import numpy as np

from kvviz.figures import theme
from kvviz.figures.channels import channel_errors, coded_group


def test_outliers_have_their_own_colour() -> None:
    sizes = np.array([1.0, 1.0, 9.0, 1.0])
    drawing = channel_errors(sizes, sizes * 0.01, np.full(4, 0.3), 4.0)
    assert list(drawing.figure.data[0].marker.color) == [theme.GONE, theme.GONE, theme.ACCENT["b"], theme.GONE]
    assert "1 of 4 are outliers; mean error 0.03 with a scale for each channel, 0.3 with one" in drawing.alt


def test_numbers_and_what_comes_back_stand_at_their_names() -> None:
    numbers, restored = np.array([0.1, 0.9]), np.array([0.0, 1.0])
    drawing = coded_group(
        numbers, [0, 3], restored, np.array([0.0, 1 / 3, 2 / 3, 1.0]), [32, 33], "position of the key"
    )
    assert [list(trace.y) for trace in drawing.figure.data] == [[0.1, 0.9], [0.0, 1.0]]
    assert list(drawing.figure.data[0].x) == [32, 33] and len(drawing.figure.layout.shapes) == 4
    assert "off by at most 0.1" in drawing.alt
    assert list(drawing.table.rows())[1] == ["33", "0.9", "3", "1.0"]

"""What the figures of the reach hold: shade, colours, frame, path and lines."""

import numpy as np
import pytest

from kvviz.figures.reach import cone_map, depth_map, parts_map
from tests.figures.examples import labels


def window(depths, tokens, size=3):
    """Reach and even shares of the last token after each depth."""
    distance = np.arange(tokens)[::-1]
    reach = np.stack([distance <= depth * (size - 1) for depth in depths])
    return reach / reach.sum(1, keepdims=True), reach


def test_what_cannot_matter_is_blank_and_what_hardly_does_is_grey():
    found, reach = window([1, 2], 8)
    found[1, 3], found[1, 7] = 1e-9, found[1, 7] + found[1, 3]
    drawing = depth_map(found, reach, [1, 2], labels(8), title="<b>T</b>", mark=2)
    fig = drawing.figure
    shade, colours = fig.data[:2]
    assert np.isfinite(shade.z).tolist() == reach.tolist()
    assert np.isnan(colours.z[1, 3]) and np.isfinite(colours.z[1, 4:]).all() and np.isnan(colours.z[~reach]).all()
    assert colours.z[1, 4] == pytest.approx(0.2) and list(colours.y) == ["1", "2"]
    assert (colours.zmin, colours.zmax) == (0, 1)
    frame = fig.layout.shapes[-1]
    assert (frame.y0, frame.y1) == (0.5, 1.5)
    assert "through 2 layers 5 of 8 positions can influence the token" in drawing.alt
    assert "<b>" not in fig.layout.title.text


def test_a_path_is_drawn_through_its_positions_from_the_input_up():
    found, reach = window([2, 1, 0], 9)
    drawing = cone_map(found, reach, labels(9, 1), path=[4, 6, 8])
    fig = drawing.figure
    paths = [trace for trace in fig.data if trace.name == "strongest path"]
    assert len(paths) == 2  # a dark border and a white line
    for path in paths:
        assert list(path.x) == [fig.data[0].x[position] for position in (4, 6, 8)] and list(path.y) == [
            "0",
            "1",
            "2",
        ]
    assert "5 positions of the input can influence the token through 2 layers" in drawing.alt
    assert drawing.alt.count("→") == 2


def test_a_path_that_stays_names_each_stop_once():
    found, reach = window([2, 1, 0], 9)
    assert cone_map(found, reach, labels(9), path=[6, 6, 8]).alt.count("→") == 1


def test_parts_show_one_cell_where_nothing_moves():
    away, still = np.array([0.25, 0.25, 0.5]), np.array([0.0, 0.0, 1.0])
    drawing = parts_map({"attention": away, "FFN": still}, labels(3))
    fig = drawing.figure
    assert list(fig.data[0].y) == ["FFN", "attention"]  # drawn from below
    assert np.isfinite(fig.data[0].z).sum(1).tolist() == [1, 3]
    assert "attention 50%, FFN 0%" in drawing.alt


def test_long_texts_share_cells_and_say_so():
    depths, tokens = [1, 30], 2048
    found, reach = window(depths, tokens, size=32)
    fig = depth_map(found, reach, depths, labels(tokens)).figure
    assert fig.data[0].z.shape == (2, 512) and fig.data[1].z.dtype == np.float32
    assert "Each cell covers 4 positions" in fig.layout.title.subtitle.text.replace("<br>", " ")
    assert len(fig.to_json()) < 200_000


def test_one_token_is_enough():
    one, inside = np.ones((2, 1)), np.ones((2, 1), dtype=bool)
    assert depth_map(one, inside, [1, 2], labels(1)).figure.to_json()
    assert cone_map(one, inside, labels(1), path=[0, 0]).figure.to_json()
    assert parts_map({"attention": one[0]}, labels(1)).figure.to_json()

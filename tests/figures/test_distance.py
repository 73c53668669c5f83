import numpy as np

from kvviz.figures.distance import distance_lines


def test_lines_end_where_the_influence_is_exactly_zero():
    drawing = distance_lines([("A", "a", np.array([0.9, 0.1, 0.0])), ("B", "b", np.array([0.5, 0.3, 0.2]))])
    fig = drawing.figure
    a, b = fig.data
    assert list(a.x) == [0, 1, 2] and np.isnan(a.y[2]) and list(b.y) == [0.5, 0.3, 0.2]
    assert fig.layout.yaxis.type == "log"
    assert a.mode == "lines+markers"  # or points between two gaps would not be seen
    assert "A reaches 1 positions back; B reaches 2 positions back" in drawing.alt


def test_one_token_is_enough():
    assert distance_lines([("A", "a", np.ones(1))]).figure.to_json()

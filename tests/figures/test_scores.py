import numpy as np
import pytest

from kvviz.figures import theme
from kvviz.figures.scores import score_bars


def test_what_is_gone_is_grey_and_the_alt_text_counts_what_is_held():
    drawing = score_bars(
        np.array([0.1, 0.8, 0.2]), np.array([False, True, True]), ["0 a", "1 b", "2 c"], y_title="score"
    )
    fig = drawing.figure
    assert list(fig.data[0].marker.color) == [theme.GONE, theme.ACCENT["a"], theme.ACCENT["a"]]
    assert drawing.alt == "score: 2 of 3 tokens still in the cache at the end; the highest bar is that of '1 b'."


def test_the_lowest_score_that_is_enough_is_a_line_and_a_token_without_a_score_has_no_bar():
    scores, held = np.array([3.0, 0.5, 0.7, np.nan]), np.array([True, False, True, True])
    drawing = score_bars(scores, held, list("abcd"), y_title="votes", cut=0.7, held_words="kept")
    (line,) = drawing.figure.layout.shapes
    assert line.y0 == line.y1 == 0.7 and drawing.figure.data[-1].name == "lowest score that stays"
    assert drawing.alt == "votes: 3 of 4 tokens kept; the highest bar is that of 'a'; the cut is at 0.7."
    assert drawing.table.csv().splitlines() == ["token,votes,kept (1 = yes)", "a,3.0,1", "b,0.5,0", "c,0.7,1", "d,,1"]


def test_sizes_must_fit():
    with pytest.raises(ValueError, match="3 scores, 2 marks and 3 labels"):
        score_bars(np.ones(3), np.ones(2, dtype=bool), ["a", "b", "c"], y_title="score")

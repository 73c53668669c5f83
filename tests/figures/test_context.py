"""Bytes against context: lines on log axes."""

from __future__ import annotations

import numpy as np

from kvviz.figures import theme
from kvviz.figures.context import Line, bytes_against_context

GIB = 2**30
CONTEXTS = [1024, 4096, 2**20]
LINES = [
    Line("<i>A</i>", (GIB, 2 * GIB, 4 * GIB), "a"),
    Line("everything", (GIB, 4 * GIB, 1024 * GIB), None, True),
    Line("none", (0, 0, 0), "b"),
    Line("other", (GIB, 2 * GIB, 3 * GIB)),
    Line("almost the same", (GIB, 2 * GIB, 3 * GIB + 1)),
]


def test_lines_have_log_axes_their_side_s_colour_and_gaps_for_nothing() -> None:
    drawing = bytes_against_context(CONTEXTS, LINES, [(8 * GIB, "8 GiB"), (80 * GIB, "80 GiB")], here=4096)
    fig = drawing.figure
    assert fig.layout.xaxis.type == fig.layout.yaxis.type == "log"
    assert "tokens" in fig.layout.xaxis.title.text and "GiB" in fig.layout.yaxis.title.text
    assert fig.data[0].line.color == theme.ACCENT["a"] and fig.data[0].y.tolist() == [1, 2, 4]
    assert np.isnan(fig.data[2].y).all()
    assert [trace.showlegend for trace in fig.data] == [True, True, True, False, False]
    assert [shape.y0 for shape in fig.layout.shapes[:2]] == [8, 80] and fig.layout.shapes[2].x0 == 4096
    assert fig.data[0].name == "&lt;i&gt;A&lt;/i&gt;" and "everything 1024 GiB" in drawing.alt


def test_names_at_the_ends_of_lines_do_not_meet() -> None:
    fig = bytes_against_context(CONTEXTS, LINES, [], here=4096).figure
    heights = [note.y for note in fig.layout.annotations if note.text in ("other", "almost the same")]
    assert len(heights) == 2 and abs(heights[0] - heights[1]) > 0.2

"""Boxes whose sides are counts, and lines on log axes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kvviz.figures import theme
from kvviz.figures.memory import COLUMNS, THIN, Box, Line, bytes_against_context, memory_boxes, sides

GIB = 2**30
WORDS = ("4 tokens", "2 heads", "512 B")
BOXES = [
    Box("<b>all</b>", 1000, 32, 512, WORDS, "× 3 layers = 7 GiB"),
    Box("fewer", 1000, 8, 512, WORDS, "× 3 layers = 1.75 GiB"),
    Box("short", 1, 8, 512, WORDS, "× 3 layers = 1 MiB"),
]
CONTEXTS = [1024, 4096, 2**20]
LINES = [
    Line("<i>A</i>", (GIB, 2 * GIB, 4 * GIB), "a"),
    Line("everything", (GIB, 4 * GIB, 1024 * GIB), None, True),
    Line("none", (0, 0, 0), "b"),
    Line("other", (GIB, 2 * GIB, 3 * GIB)),
    Line("almost the same", (GIB, 2 * GIB, 3 * GIB + 1)),
]


def test_each_side_is_as_long_as_its_count() -> None:
    scale = [1000, 32, 512]
    whole, fewer, short = (sides(box, scale) for box in BOXES)
    assert fewer[1] == pytest.approx(whole[1] / 4) and fewer[::2] == whole[::2]
    assert short[0] == THIN and short[1:] == fewer[1:]


def test_boxes_are_drawn_as_few_traces_with_words_and_alt_text() -> None:
    fig = memory_boxes(BOXES, title="One layer")
    assert len(fig.data) == 4  # the outline and three faces of all boxes together
    texts = [note.text for note in fig.layout.annotations]
    assert "&lt;b&gt;all&lt;/b&gt;" in texts and "× 3 layers = 1 MiB" in texts
    assert "fewer: × 3 layers = 1.75 GiB" in fig.layout.meta["alt"] and fig.layout.meta["alt"].endswith(".")
    assert fig.layout.height > memory_boxes(BOXES[:COLUMNS]).layout.height
    assert len(fig.to_json()) < 12_000 and "<b>" not in fig.to_json().replace(json.dumps(fig.layout.meta["alt"]), "")


def test_one_box_is_enough() -> None:
    assert memory_boxes(BOXES[:1]).layout.meta["alt"]


def test_lines_have_log_axes_their_side_s_colour_and_gaps_for_nothing() -> None:
    fig = bytes_against_context(CONTEXTS, LINES, [(8 * GIB, "8 GiB"), (80 * GIB, "80 GiB")], here=4096)
    assert fig.layout.xaxis.type == fig.layout.yaxis.type == "log"
    assert "tokens" in fig.layout.xaxis.title.text and "GiB" in fig.layout.yaxis.title.text
    assert fig.data[0].line.color == theme.ACCENT["a"] and fig.data[0].y.tolist() == [1, 2, 4]
    assert np.isnan(fig.data[2].y).all()
    assert [trace.showlegend for trace in fig.data] == [True, True, True, False, False]
    assert [shape.y0 for shape in fig.layout.shapes[:2]] == [8, 80] and fig.layout.shapes[2].x0 == 4096
    assert fig.data[0].name == "&lt;i&gt;A&lt;/i&gt;" and "everything 1024 GiB" in fig.layout.meta["alt"]


def test_names_at_the_ends_of_lines_do_not_meet() -> None:
    fig = bytes_against_context(CONTEXTS, LINES, [], here=4096)
    heights = [note.y for note in fig.layout.annotations if note.text in ("other", "almost the same")]
    assert len(heights) == 2 and abs(heights[0] - heights[1]) > 0.2

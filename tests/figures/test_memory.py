"""Boxes whose sides are counts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kvviz.figures.memory import THIN, TITLE_WIDTH, Box, columns_for, memory_boxes, sides
from kvviz.figures.theme import ACCENT

WORDS = ("4 tokens", "2 heads", "512 B")
BOXES = [
    Box("<b>all</b>", 1000, 32, 512, WORDS, "× 3 layers = 7 GiB"),
    Box("fewer", 1000, 8, 512, WORDS, "× 3 layers = 1.75 GiB"),
    Box("short", 1, 8, 512, WORDS, "× 3 layers = 1 MiB"),
]


def test_each_side_is_as_long_as_its_count() -> None:
    scale = [1000, 32, 512]
    whole, fewer, short = (sides(box, scale) for box in BOXES)
    assert fewer[1] == pytest.approx(whole[1] / 4) and fewer[::2] == whole[::2]
    assert short[0] == THIN and short[1:] == fewer[1:]


def test_boxes_are_drawn_as_few_traces_with_words_and_alt_text() -> None:
    drawing = memory_boxes(BOXES, title="One layer")
    fig = drawing.figure
    assert len(fig.data) == 4  # the outline and three faces of all boxes together
    texts = [note.text.replace("<br>", " ") for note in fig.layout.annotations]
    assert "&lt;b&gt;all&lt;/b&gt;" in texts and "× 3 layers = 1 MiB" in texts
    assert "fewer: × 3 layers = 1.75 GiB" in drawing.alt and drawing.alt.endswith(".")
    assert len(fig.to_json()) < 12_000 and "<b>" not in fig.to_json().replace(json.dumps(drawing.alt), "")


def test_no_box_stands_alone_in_a_row_and_no_title_is_cut() -> None:
    """The third box stood by itself in a second row, under a title that ended in the middle of a word."""
    assert [-(-count // columns_for(count)) for count in range(1, 7)] == [1, 1, 1, 2, 2, 2]
    assert all(count % columns_for(count) != 1 or columns_for(count) == 1 for count in range(1, 7))
    titled = replace(BOXES[1], title="A: StreamingLLM, budget 64, sinks 4")
    title = next(note.text for note in memory_boxes([titled]).figure.layout.annotations if "Streaming" in note.text)
    lines = title.split("<br>")
    assert " ".join(lines) == titled.title and max(map(len, lines)) <= TITLE_WIDTH


def test_a_box_has_the_colour_of_its_side() -> None:
    drawn = memory_boxes([BOXES[0], replace(BOXES[1], side="a"), replace(BOXES[2], side="b")]).figure
    fronts = [trace.fillcolor for trace in drawn.data[1::3]]
    assert fronts[1:] == list(ACCENT.values()) and fronts[0] not in fronts[1:]


def test_one_box_is_enough() -> None:
    assert memory_boxes(BOXES[:1]).alt

"""The draft tree, its mask and its slots: what stands where and in which colour."""

from __future__ import annotations

import numpy as np

from kvviz.figures import theme
from kvviz.figures.tree import Node, draft_tree, heights, share
from kvviz.figures.tree_slots import accepted_bars, step_slots, tree_mask

NODES = [
    Node("a", -1, 1, True, 0.25),
    Node("b", 0, 2, False, 0.0),
    Node("c", -1, 1, False, 0.0),
    Node("d", 0, 2, True, 1e-5),
]


def test_leaves_stand_one_below_another_and_parents_among_their_children() -> None:
    assert heights(NODES) == [-1.25, -0.5, 0.0, -2.0, -1.0]
    assert heights([]) == [0.0]


def test_accepted_nodes_have_the_accent_and_each_its_weight() -> None:
    drawing = draft_tree("root", NODES, added="e", reader="‘d’")
    points = drawing.figure.data[2]
    assert list(points.marker.color) == [*[theme.ACCENT["a"]] * 2, *[theme.GONE] * 2, theme.ACCENT["a"]]
    assert [text.partition("<br>")[2] for text in points.text] == ["", "0.25", "0", "0", "&lt;0.001"]
    assert list(points.x) == [0, 1, 2, 1, 2]
    assert "2 of 4 drafted tokens accepted, then the model adds 'e'" in drawing.alt
    assert (share(0.0), share(0.123)) == ("0", "0.12")


def test_the_mask_is_drawn_as_it_is() -> None:
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 0, 1]], dtype=bool)
    drawing = tree_mask(mask, ["0 x", "1 r", "2 a", "2 b"], 1)
    assert drawing.figure.data[0].z.tolist() == mask.astype(int).tolist()
    assert list(drawing.figure.data[0].y) == ["1 r", "2 a", "2 b"] and "4 pairs hidden" in drawing.alt


def test_kept_slots_move_together() -> None:
    drawing = step_slots(["0 x", "1 r", "2 a", "2 b", "3 c"], 1, [0, 2, 3])
    after, read = drawing.figure.data[0].z
    assert read.tolist() == [1, 2, 3, 2, 2]
    assert after[:4].tolist() == [1, 2, 2, 2] and np.isnan(after[4])
    assert "3 of 4 rows kept, 1 slot dropped" in drawing.alt


def test_accepted_tokens_step_by_step() -> None:
    drawing = accepted_bars([4, 4], [1, 3], 1)
    bars = [(list(bar.x), list(bar.y), bar.marker.color) for bar in drawing.figure.data[1:]]
    assert bars == [([0], [1], theme.ACCENT["a"]), ([1], [3], theme.ACCENT["b"])]
    assert "2 a step on average, 4 in 2 steps" in drawing.alt

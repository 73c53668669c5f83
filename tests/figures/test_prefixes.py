"""The radix tree and the pool of blocks: what is drawn where, small and fast also for eight long prompts."""

from __future__ import annotations

import json

from kvviz.figures import theme
from kvviz.figures.prefixes import EQUAL, HIT, OWN, Branch, pieces, pool_grid, radix_tree

SHARED = Branch(0, 20, 0.5, None, 16, True, "You are", ())
MINE = Branch(20, 24, 0.0, 0.5, 16, False, "Monday", (1,))


def test_a_branch_is_a_hit_up_to_its_last_whole_block() -> None:
    assert [piece[:3] for piece in pieces(SHARED)] == [(HIT, 0, 16), (EQUAL, 16, 20)]
    assert [piece[:3] for piece in pieces(MINE)] == [(OWN, 20, 24)]
    assert [piece[:3] for piece in pieces(SHARED._replace(hit_end=30))] == [(HIT, 0, 20)]


def test_bars_lie_along_the_positions() -> None:
    drawing = radix_tree([SHARED, MINE])
    bars = [trace for trace in drawing.figure.data if trace.type == "bar"]
    assert [(list(bar.base), list(bar.x), bar.marker.color) for bar in bars] == [
        ([0], [16], theme.ACCENT["a"]),
        ([16], [4], theme.ACCENT["b"]),
        ([20], [4], theme.GONE),
    ]
    assert "24 different tokens, of which 16 were hits" in drawing.alt
    assert list(drawing.table.rows())[1] == ["20", "24", "16", "0", "Monday", "1"]


def test_eight_long_prompts_are_a_small_figure() -> None:
    ends = [Branch(500, 512, float(row), 3.5, 496, False, "x" * 28, (row + 1,)) for row in range(8)]
    drawing = radix_tree([Branch(0, 500, 3.5, None, 496, True, "y" * 28, ()), *ends])
    assert len(json.dumps(drawing.figure.to_dict(), default=str)) < 40_000


def test_references_stand_in_their_blocks() -> None:
    drawing = pool_grid([(0, 2, 16), (1, 0, 16), (25, 1, 3)], 16)
    heat = drawing.figure.data[0]
    assert heat.z[0, 0] == 2 and heat.z[0, 1] == 0 and heat.z[1, 1] == 1 and heat.text[1][1] == "1"
    assert heat.hovertext[1][1] == "block 25: 1 reference, 3 of 16 tokens"
    assert "3 blocks, 2 held by open prompts, 1 only kept; most references 2" in drawing.alt
    assert "0 blocks" in pool_grid([], 16).alt

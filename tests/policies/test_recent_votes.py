"""TOVA and the attention window by hand: seven steps of one head."""

from __future__ import annotations

from kvviz.policies.attention_window import AttentionWindow
from kvviz.policies.tova import Tova
from tests.policies.test_h2o import walked


def test_tova_asks_the_last_query_alone() -> None:
    """Weights of row t over the tokens it sees, in sixteenths; budget 3.

    t=2: [4, 10, 2]          all three fit
    t=3: row 2 said 1, 0     → kept 0 1 3; row [1, 2, -, 13]
    t=4: row 3 said 3, 1     → kept 1 3 4; row [-, 8, -, 4, 4]: token 0 goes, which had received most in all
    t=5: row 4 said 1, and of the equal 3 and 4 the older leaves → kept 1 4 5; row [-, 2, -, -, 4, 10]
    t=6: row 5 said 5, 4     → kept 4 5 6
    """
    raw = [
        [16, 1, 1, 1, 1, 1, 1],
        [12, 4, 1, 1, 1, 1, 1],
        [4, 10, 2, 1, 1, 1, 1],
        [1, 2, 99, 13, 1, 1, 1],
        [99, 8, 99, 4, 4, 1, 1],
        [99, 2, 99, 99, 4, 10, 1],
        [1, 1, 1, 1, 1, 1, 1],
    ]
    kept = walked(Tova(budget=3), raw)
    assert kept == [[0], [0, 1], [0, 1, 2], [0, 1, 3], [1, 3, 4], [1, 4, 5], [4, 5, 6]]


def test_the_attention_window_adds_up_its_latest_queries_and_forgets_older_ones() -> None:
    """Budget 4, the newest always kept, the last two queries vote.

    t=3: [6, 2, 4, 4]        all four fit
    t=4: rows 2 + 3 say 0: 8, 1: 14, 2: 6, 3: 4       → 3 leaves; row [1, 1, 10, -, 4]
    t=5: rows 3 + 4 say 0: 7, 1: 3, 2: 14, 4: 4       → 1 leaves, which had received most in all; row [1, -, 1, -, 6, 8]
    t=6: rows 4 + 5 say 0: 2, 2: 11, 4: 10, 5: 8      → 0 leaves
    """
    raw = [
        [16, 1, 1, 1, 1, 1, 1],
        [8, 8, 1, 1, 1, 1, 1],
        [2, 12, 2, 1, 1, 1, 1],
        [6, 2, 4, 4, 1, 1, 1],
        [1, 1, 10, 99, 4, 1, 1],
        [1, 99, 1, 99, 6, 8, 1],
        [1, 1, 1, 1, 1, 1, 1],
    ]
    kept = walked(AttentionWindow(budget=4, recent=1, observe=2), raw)
    assert kept == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 4], [0, 2, 4, 5], [2, 4, 5, 6]]

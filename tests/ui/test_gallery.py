"""The gallery's figures, by hand for 24 tokens and 4 layers."""

from __future__ import annotations

from kvviz.ui.attention.gallery import cost_words, examples


def test_pairs_and_reach_by_hand() -> None:
    """Sliding: 24·6 less the 15 that begin before token 0; 4·5 + 1 positions. Dilated: every second one of them."""
    found = {one.title: (one.pairs, one.reach) for one in examples()}
    assert found["Full"] == (300, 24)
    assert found["Sliding window"] == (24 * 6 - 15, 4 * 5 + 1)
    assert found["Dilated"] == (24 * 6 - 30, 12)
    assert found["Global + sliding"][1] == 21 + 1  # one hop to token 0 besides
    assert found["Layered"] == (24 * 6 - 15, 24)  # one full layer reaches everything


def test_the_words_name_the_cost() -> None:
    sliding = next(one for one in examples() if one.title == "Sliding window")
    assert "129 of 300 pairs, n·w = 144. After 4 layers the last token can depend on 21 of 24" in cost_words(sliding)

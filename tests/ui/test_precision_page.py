"""The Precision page on the real model, without a browser: every part, and what is refused in a sentence."""

from __future__ import annotations

import pytest

from tests.ui.test_pages import charts, headline, opened, said

pytestmark = pytest.mark.real
PAGE = "pages/9_Precision.py"
SMALL = {"text": "story", "tokens": "25", "bits_group": "8", "bits_residual": "8"}


@pytest.mark.parametrize(("part", "figures"), [("channels", 3), ("worked", 3), ("cost", 3), ("needles", 2)])
def test_every_part_has_its_figures(part: str, figures: int) -> None:
    at = opened(PAGE, **SMALL, precision_part=part)
    assert "int4 keys move" in headline(at) and "of the attention" in headline(at)
    assert len(charts(at)) == figures and not at.error
    if part == "needles":
        assert [one for one in at.button if one.label == "Look for needles under every storage"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"bits_group": "3"}, "must be a multiple of group=3"),
        ({"bits_residual": "32"}, "at least 33 tokens"),
        ({"precision_part": "worked", "bits_block": "9"}, "There is no block 9: 25 keys make 3 blocks of 8"),
        ({"precision_part": "worked", "bits_channel": "99"}, "There is no channel 99"),
    ],
)
def test_nonsense_is_answered_in_a_sentence(words: dict[str, str], sentence: str) -> None:
    assert sentence in said(opened(PAGE, **{**SMALL, **words})).replace("\\", "")

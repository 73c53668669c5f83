"""The Branches page on the real model, without a browser: every part, and what is refused in a sentence."""

from __future__ import annotations

import pytest

from tests.ui.test_pages import charts, headline, opened, said

pytestmark = pytest.mark.real
PAGE = "pages/10_Branches.py"
SMALL = {"text": "repeats", "tokens": "64", "draft_new": "8"}


@pytest.mark.parametrize(("part", "figures"), [("lengths", 2), ("mask", 2), ("slots", 2), ("equal", 1), ("cost", 1)])
def test_every_part(part: str, figures: int) -> None:
    at = opened(PAGE, **SMALL, branches_part=part)
    assert "the text and the cache equal plain decoding" in headline(at)
    assert len(charts(at)) == figures and not at.error
    if part == "cost":
        assert [one for one in at.button if one.label == "Time the tree of this step"]


def test_the_first_layers_draft_too() -> None:
    at = opened(PAGE, **SMALL, drafter="layers", draft_layers="20", draft_depth="2")
    assert "Of " in headline(at) and "equal plain decoding" in headline(at)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"draft_width": "16", "draft_depth": "16"}, "more than the 64 that are verified at once"),
        ({"drafter": "layers", "draft_layers": "30"}, "The first 30 layers cannot draft: choose from 1 to 29"),
        ({"draft_step": "99"}, "There is no step 99: the steps are 0–"),
    ],
)
def test_nonsense_is_answered_in_a_sentence(words: dict[str, str], sentence: str) -> None:
    assert sentence in said(opened(PAGE, **{**SMALL, **words})).replace("\\", "")

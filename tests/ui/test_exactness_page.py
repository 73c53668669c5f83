"""The Exactness page on the real model, without a browser: every part, and what is refused in a sentence."""

from __future__ import annotations

import pytest

from kvviz.ui.shell.runs import WORKER
from tests.ui.test_pages import charts, headline, opened, said

pytestmark = pytest.mark.real
PAGE = "pages/8_Exactness.py"
SMALL = {"text": "story", "tokens": "25"}
OFF = {f"break_{name}": "False" for name in ("prefix", "weights", "positions", "rule", "dtype")}


def test_a_broken_condition_is_one_more_computation() -> None:
    at = opened(PAGE, **SMALL, **OFF)
    assert "## Cached and uncached answers differ by at most" in headline(at) and "10⁻⁵ nats" in headline(at)
    before = WORKER.computed
    at = opened(PAGE, **SMALL, **{**OFF, "break_rule": "True"}, break_window="2")
    assert WORKER.computed == before + 1 and "a window of 2 the answer changes at token" in headline(at)


@pytest.mark.parametrize(("part", "figures"), [("edit", 3), ("mask", 4), ("removal", 4), ("positions", 4)])
def test_every_part_has_its_figures(part: str, figures: int) -> None:
    at = opened(PAGE, **SMALL, **OFF, exact_part=part, number_budget="8")
    assert len(charts(at)) == figures and not at.error


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"tokens": "2"}, "give at least 3 tokens"),
        ({"break_prefix": "True", "break_at": "99"}, "There is no token 99 in the prefix"),
        ({"exact_part": "edit", "edit_at": "99"}, "There is no token 99 to edit: the text has the positions 0–24"),
        ({"exact_part": "removal", "remove_at": "99"}, "There is no entry 99 to remove"),
        ({"exact_part": "removal", "remove_step": "3"}, "There is no step 3 after the prefix"),
        ({"exact_part": "positions", "number_step": "99"}, "There is no step 99: the text has the positions 0–24"),
        ({"exact_part": "positions", "number_budget": "4", "number_sinks": "4"}, "sinks"),
    ],
)
def test_nonsense_is_answered_in_a_sentence(words: dict[str, str], sentence: str) -> None:
    at = opened(PAGE, **{**SMALL, **OFF, **words})
    assert sentence in said(at).replace("\\", "")


def test_a_short_text_has_an_early_token_too() -> None:
    at = opened(PAGE, text="story", tokens="4", **{**OFF, "break_prefix": "True"})
    assert "another token at position 1" in " ".join(one.value for one in at.markdown) and not at.error
    assert "There is no token" not in said(at)

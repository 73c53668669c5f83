"""The Quality page on the real model, without a browser: one job a setup, every part, and what is refused."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from kvviz.ui.quality import limits, needle_run, needle_words
from kvviz.ui.shell.runs import WORKER
from tests.ui.test_pages import charts, checked, headline, opened, said

pytestmark = pytest.mark.real
PAGE = "pages/6_Quality.py"
SMALL = {"text": "story", "tokens": "25", "stream_tokens": "24", "policy": "window:budget=8"}


def shown(**more: str) -> AppTest:
    return opened(PAGE, **{**SMALL, **more})


def test_a_further_setup_is_one_more_computation_and_a_repeated_look_none() -> None:
    at = shown(b_policy="tova:budget=8")
    assert "In the second half of 24 tokens A (Sliding window, budget 8) loses" in headline(at)
    before = WORKER.computed
    at.session_state["setups"] = "h2o:budget=8"
    assert "; C (H2O, budget 8" in headline(checked(at)) and WORKER.computed == before + 1
    again = shown(b_policy="tova:budget=8", setups="h2o:budget=8")
    assert headline(again) == headline(at) and WORKER.computed == before + 1


def test_what_is_written_wrongly_is_answered_in_a_sentence_and_the_rest_is_read() -> None:
    at = shown()
    at.multiselect(key="added.menu").set_value(["h2o:budget=8", "windw:budget=4"])
    checked(at)
    assert "did you mean 'window'" in said(at) and "; C (H2O, budget 8" in headline(at)
    at = opened(PAGE, **SMALL, setups=";".join(f"window:budget={size}" for size in range(1, 8)))
    assert "; C" not in headline(at)  # the sentence was there before the page changed to this one


@pytest.mark.parametrize("part", ["words", "tradeoff", "sweep", "ways"])
def test_every_part_has_its_figure(part: str) -> None:
    at = shown(quality_part=part)
    assert len(charts(at)) >= 2 and not at.error


def test_needles_and_limits_have_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (needle_run, needle_words):
        monkeypatch.setattr(module, "DEPTHS", (100,))
    at = shown(quality_part="needles", needle_seeds="1")
    assert "prompts, read in" in said(at) and "of 1 (" in " ".join(text.value for text in at.markdown)
    monkeypatch.setattr(limits, "POLICIES", ("window",))
    monkeypatch.setattr(limits, "TASKS", ("induction",))
    monkeypatch.setattr(limits, "BUDGETS", (64, 128))
    at = shown(quality_part="limits")
    told = " ".join(text.value for text in at.markdown)
    assert "window does everything down to 128 entries, then induction fails first" in told
    assert "Budgets tried: 64 and 128." in said(at)


def test_without_a_token_after_the_prompt_that_is_said() -> None:
    for part in ("words", "ways"):
        assert "end the prompt earlier" in said(shown(quality_part=part, prompt_tokens="25"))

"""The Prefixes page on the real model, without a browser: every part, own prompts, and what is refused."""

from __future__ import annotations

import pytest

from kvviz.choices.linked_text import Text
from tests.ui.test_pages import charts, headline, opened, said

pytestmark = pytest.mark.real
PAGE = "pages/11_Prefixes.py"


def pasted(text: str) -> dict[str, str]:
    return {"prompts": "paste", "own_prompts": Text(text).spell(), "prefix_block": "2"}


SHORT = pasted("Today is 14 July, and it rains.\n---\nToday is 15 July, and it rains.")


@pytest.mark.parametrize(("part", "figures"), [("blocks", 2), ("saved", 2), ("equal", 2)])
def test_every_part_has_its_figure(part: str, figures: int) -> None:
    at = opened(PAGE, **SHORT, prefix_part=part)
    assert "Prompt 2 shares 4 of 11 tokens with prompt 1 and breaks at token 4, ‘5’ against ‘4’" in headline(
        at
    ).replace("\\", "")
    assert len(charts(at)) == figures and not at.error
    assert "A number differs" in " ".join(one.value for one in at.markdown)


def test_one_prompt_and_equal_prompts_are_fine() -> None:
    assert "nothing to share it with" in headline(opened(PAGE, **pasted("Only one.")))
    at = opened(PAGE, **pasted("The same prompt.\n---\nThe same prompt."), two_answers="True")
    assert "No prompt differs" in headline(at) and not at.error


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"prompts": "paste"}, "There is no prompt yet"),
        (pasted("a\n---\n---\nb"), "Prompt 2 is empty"),
        ({**SHORT, "prefix_blocks": "2"}, "and the budget is 2"),
        ({**SHORT, "prefix_step": "99"}, "There is no step 99: the steps are 0–1"),
    ],
)
def test_nonsense_is_answered_in_a_sentence(words: dict[str, str], sentence: str) -> None:
    assert sentence in said(opened(PAGE, **words)).replace("\\", "")

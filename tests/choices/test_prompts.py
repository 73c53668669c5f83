"""Sets of prompts, and prompts as people paste them."""

from __future__ import annotations

import pytest

from kvviz.choices.prompts import MOST_PROMPTS, PROMPT_SETS, chat, separate


def test_a_chat_is_written_as_the_model_reads_it() -> None:
    assert chat("S", "U", "A", "V") == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
        "<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("name", PROMPT_SETS)
def test_every_set_can_be_shown(name: str) -> None:
    prompts = PROMPT_SETS[name].prompts
    assert 2 <= len(prompts) <= MOST_PROMPTS and all(prompts)
    assert separate("\n---\n".join(prompts)) == list(prompts)


def test_pasted_prompts_are_parted_by_dashes() -> None:
    assert (
        separate("a\nb\n---\nc") == ["a\nb", "c"] and separate("") == [] and separate("a\r\n --- \r\nb") == ["a", "b"]
    )


@pytest.mark.parametrize(
    ("pasted", "words"),
    [
        ("a\n---\n---\nb", "Prompt 2 is empty"),
        ("\n---\n".join("abcdefghi"), "9 prompts are too many"),
        ("x" * 20_001, "20,001 characters and at most 20,000"),
    ],
)
def test_nonsense_is_refused(pasted: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        separate(pasted)

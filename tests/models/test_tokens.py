"""Tokens are shown whole: every byte visible, nothing altered, equal ones apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from kvviz.choices.texts import PRESETS
from kvviz.models import Loaded
from kvviz.models.tokens import _byte_of, encode, labels, pieces
from kvviz.text.signs import escape, unique_labels, visible

HARD = [
    "否。",
    "刚",
    "a  b\n\n\tc\r\nd   ",
    " 😀 👩\u200d👩\u200d👧 🇨🇭",
    "\ufeffnull\x00 bell\x07 esc\x1b\u202eright\u2066 zero\u200bwidth no\u00a0break e\u0301 ❤\ufe0f",
    "<|im_end|> is written, </s> and <b> & <script>alert('\"')</script> $x$ too",
    "1234 ½ ²",
]


def byte_level() -> Any:
    """GPT-2's kind of tokenizer: one token per byte, two merges, one special token."""
    vocabulary = dict(_byte_of())
    vocabulary |= {"th": 256, "Ġth": 257}
    tokenizer = Tokenizer(BPE(vocabulary, [("t", "h"), ("Ġ", "th")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")


def sentence_piece() -> Any:
    """Llama 2's kind: ``▁`` for a space, one more before the text, unknown characters as byte tokens."""
    known = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "t", "h", "e", "▁t"]
    vocabulary = {token: rank for rank, token in enumerate(known)}
    tokenizer = Tokenizer(BPE(vocabulary, [("▁", "t")], byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(Regex(" "), "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


@pytest.fixture(scope="module", params=[byte_level, sentence_piece])
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return request.param()


@pytest.mark.parametrize("text", HARD)
def test_the_pieces_join_to_the_text(tokenizer: Any, text: str) -> None:
    """Known fault 152: a character over several tokens is shown as replacement signs."""
    assert b"".join(pieces(tokenizer, encode(tokenizer, text, 10_000))).decode() == text


@settings(deadline=None, max_examples=60)
@given(st.text(min_size=1, max_size=40))
def test_any_text_survives(tokenizer: Any, text: str) -> None:
    ids = encode(tokenizer, text, 10_000)
    shown = labels(tokenizer, ids)
    assert b"".join(pieces(tokenizer, ids)).decode() == text
    assert all(label and (label.isprintable() or label in text) for label in shown)
    assert "\ufffd" not in "".join(shown) or "\ufffd" in text


def test_a_character_over_several_tokens_is_shown_as_bytes(tokenizer: Any) -> None:
    """Known fault 152: a character over several tokens is shown as replacement signs."""
    assert labels(tokenizer, encode(tokenizer, "刚", 9))[-3:] == ["⟨E5⟩", "⟨88⟩", "⟨9A⟩"]


def test_spaces_newlines_tabs_and_hidden_characters_are_visible() -> None:
    assert visible(" a\n\t\r") == "␣a↵⇥␍"
    assert visible("\x00\u200b\u202e\u00a0\ufe0f\ufeff") == "⟨U+0000⟩⟨U+200B⟩⟨U+202E⟩⟨U+00A0⟩⟨U+FE0F⟩⟨U+FEFF⟩"
    assert visible("\u0301x") == "◌\u0301x"
    assert visible("naïve 中 😀", keep_spaces=True) == "naïve 中 😀"


def test_a_leading_space_belongs_to_the_label() -> None:
    tokenizer = byte_level()
    assert labels(tokenizer, encode(tokenizer, "th th", 9)) == ["th", "␣th"]


def test_special_tokens_are_shown_as_written() -> None:
    tokenizer = byte_level()
    assert labels(tokenizer, encode(tokenizer, "t</s>", 9)) == ["t", "</s>"]


def test_an_id_without_a_token_has_a_label_and_no_bytes() -> None:
    tokenizer = byte_level()
    assert labels(tokenizer, [5000]) == ["⟨token 5000⟩"]
    assert pieces(tokenizer, [5000]) == [b""]
    assert labels(tokenizer, []) == []


def test_equal_tokens_stay_apart() -> None:
    """Known fault 156: equal tokens merge into one place of an axis."""
    assert unique_labels(["a", "a", "1 a"], first=1) == ["1 a", "2 a", "3 1 a"]
    many = unique_labels(["x"] * 500)
    assert len(set(many)) == 500 and many[0] == "0 x"


def test_markup_is_literal_in_plotly() -> None:
    assert escape("<b>&</s>") == "&lt;b&gt;&amp;&lt;/s&gt;"
    assert escape("two words\n\u200b \"'") == "two words↵⟨U+200B⟩ \"'"


def test_the_text_is_tokenised_whole_and_then_cut(tokenizer: Any) -> None:
    whole = encode(tokenizer, "the then there", 10_000)
    assert encode(tokenizer, "the then there", 3) == whole[:3]


@pytest.mark.parametrize(
    ("text", "limit", "words"),
    [("", 5, "empty"), ("a", 0, "at least 1 token, not 0"), ("ab\ud800", 5, "Character 2 .* surrogate")],
)
def test_what_cannot_be_encoded_is_refused(text: str, limit: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        encode(byte_level(), text, limit)


@pytest.mark.real
@pytest.mark.parametrize("text", [*HARD, *(preset.text() for preset in PRESETS.values())], ids=lambda text: text[:9])
def test_smollm2_gives_every_text_back(smollm2: Loaded, text: str) -> None:
    ids = encode(smollm2.tokenizer, text, len(text) * 4)
    assert smollm2.tokenizer.decode(ids) == text
    assert b"".join(pieces(smollm2.tokenizer, ids)).decode() == text


@pytest.mark.real
def test_smollm2_shows_cjk_as_characters_or_bytes(smollm2: Loaded) -> None:
    """Known fault 151: tokens are shown in the tokenizer's own byte letters."""
    ids = encode(smollm2.tokenizer, "否。刚 x", 99)
    assert labels(smollm2.tokenizer, ids) == ["⟨E5⟩⟨90⟩", "⟨A6⟩", "。", "⟨E5⟩⟨88⟩", "⟨9A⟩", "␣x"]

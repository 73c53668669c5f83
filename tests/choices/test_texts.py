"""The presets, and what an upload may be."""

from __future__ import annotations

from typing import Any

import pytest

from kvviz.choices.patterns import PATTERNS
from kvviz.choices.texts import DEFAULT_TEXT, MAX_UPLOAD_BYTES, PRESETS, from_upload
from kvviz.models import Loaded
from kvviz.models.tokens import encode, labels
from kvviz.policies import POLICIES

MENU_WIDTH = 32  # characters that a menu of the sidebar shows


def test_every_preset_has_a_text_and_its_own_title() -> None:
    assert list(PRESETS) == [preset.name for preset in PRESETS.values()]
    assert len({preset.title for preset in PRESETS.values()}) == len(PRESETS)
    assert all(preset.text() and preset.text() == preset.text() for preset in PRESETS.values())


@pytest.mark.parametrize("registry", [POLICIES, PATTERNS, PRESETS])
def test_titles_fit_the_menus_of_the_sidebar(registry: dict[str, Any]) -> None:
    assert {choice.title for choice in registry.values() if len(choice.title) > MENU_WIDTH} == set()


def test_the_language_reference_is_long_english() -> None:
    text = PRESETS["language-reference"].text()
    assert len(text) > 400_000
    assert text.count(" the ") > 2000


def test_the_unicode_preset_has_the_hard_cases() -> None:
    text = PRESETS["unicode"].text()
    for part in ["中文", "😀", "\u200d", "<script>", "</s>", "<b>", '"', "'", "$x$", "\t", "   ", "\u200b"]:
        assert part in text


def test_newlines_and_control_characters_of_an_upload_stay() -> None:
    assert from_upload("a\r\nb\rc\n\x00\x1b é".encode()) == "a\r\nb\rc\n\x00\x1b é"


def test_only_a_leading_byte_order_mark_goes() -> None:
    assert from_upload("\ufeffa\ufeffb".encode()) == "a\ufeffb"
    assert from_upload("\ufeff\ufeffa".encode()) == "\ufeffa"


@pytest.mark.parametrize(
    ("data", "place"),
    [(b"caf\xe9", 3), (b"\xff\xfea\x00", 0), (b"\xef\xbb\xbfab\x80", 5), ("刚".encode()[:2], 0), (b"\xed\xa0\x80", 0)],
)
def test_what_is_not_utf8_is_refused_with_its_place(data: bytes, place: int) -> None:
    with pytest.raises(ValueError, match=rf"not UTF-8 text: byte {place} .*encoding UTF-8"):
        from_upload(data)


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_an_empty_upload_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="empty"):
        from_upload(data)


@pytest.mark.parametrize("blanks", [" ", "\n", " \t\r\n\u3000"])
def test_blanks_alone_are_a_text(blanks: str) -> None:
    assert from_upload(blanks.encode()) == blanks


def test_an_upload_has_a_size_limit() -> None:
    assert len(from_upload(b"a" * MAX_UPLOAD_BYTES)) == MAX_UPLOAD_BYTES
    with pytest.raises(ValueError, match="1,000,001 bytes and at most 1,000,000"):
        from_upload(b"a" * (MAX_UPLOAD_BYTES + 1))


@pytest.mark.real
def test_the_toy_text_is_twelve_tokens_counted_from_one(smollm2: Loaded) -> None:
    toy = PRESETS["toy"]
    assert len(encode(smollm2.tokenizer, toy.text(), 99)) == 12
    assert toy.count_from == 1


@pytest.mark.real
def test_the_default_text_fills_the_default_length(smollm2: Loaded) -> None:
    assert len(encode(smollm2.tokenizer, PRESETS[DEFAULT_TEXT].text(), 9999)) >= 256


@pytest.mark.real
@pytest.mark.parametrize("blanks", [" ", "\n", "\n \t\u3000  "])
def test_blanks_alone_are_tokens(smollm2: Loaded, blanks: str) -> None:
    ids = encode(smollm2.tokenizer, blanks, 99)
    assert ids and all(labels(smollm2.tokenizer, ids))

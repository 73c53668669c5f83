"""A text as it travels in a link: a preset by its name, a short one compressed, a long one by its hash."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kvviz.choices.texts import MAX_UPLOAD_BYTES, PRESETS
from kvviz.choices.words import one_of

LINK_TEXT_BYTES = 4096  # a longer text travels as its hash: URLs beyond a few kB are cut by mail programs


@dataclass(frozen=True)
class Text:
    """A text and, when it is one of the presets, its name."""

    content: str
    preset: str | None = None

    @classmethod
    def of_preset(cls, name: str) -> Text:
        one_of("text", tuple(PRESETS))(name)
        return cls(PRESETS[name].text(), name)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content.encode()).hexdigest()

    @property
    def count_from(self) -> int:
        """The number of the first token on screen: 1 for the toy preset, as in the sources; else 0."""
        return PRESETS[self.preset].count_from if self.preset else 0

    def spell(self) -> str:
        """A preset's name, ``z:`` and the compressed text, or ``sha256:`` and the hash of a long one."""
        if self.preset:
            return self.preset
        packed = base64.urlsafe_b64encode(zlib.compress(self.content.encode(), 9)).decode().rstrip("=")
        return f"z:{packed}" if len(packed) <= LINK_TEXT_BYTES else f"sha256:{self.sha256}"


def parse_text(word: str, known: Mapping[str, str] | None = None) -> Text:
    """The text that ``word`` spells; ``known`` maps sha256 to the texts at hand. ValueError says what is missing."""
    kind, _, rest = word.partition(":")
    if kind == "z":
        return Text(unpack(rest))
    if kind == "sha256":
        if rest not in (known or {}):
            raise ValueError(
                f"This link is about a text too long to travel in it (sha256 {rest[:12]}…); "
                "paste or upload that text to see the same figures."
            )
        return Text((known or {})[rest])
    return Text.of_preset(word)


def unpack(packed: str) -> str:
    """Undo ``Text.spell``'s compression; a bomb or a damaged link becomes one sentence."""
    try:
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        decompressor = zlib.decompressobj()
        plain = decompressor.decompress(raw, MAX_UPLOAD_BYTES)
        if not decompressor.eof:
            raise ValueError("cut short, or longer than any text may be")
        return plain.decode()
    except (ValueError, zlib.error):
        raise ValueError("The text in this link is damaged; copy the whole link again, or paste the text.") from None

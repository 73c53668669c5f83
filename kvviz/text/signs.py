"""Text made visible: every space, newline and hidden character as a sign, and nothing altered."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence

SPACE, NEWLINE, TAB, RETURN = "␣", "↵", "⇥", "␍"
_SIGNS = {"\n": NEWLINE, "\t": TAB, "\r": RETURN}
# characters of a visible category that draw nothing: joiners, fillers, the blank Braille cell, variation selectors
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}


def unique_labels(labels: Sequence[str], first: int = 0) -> list[str]:
    """Number the labels from ``first``: ``17 ␣the``. Equal tokens stay apart on a category axis."""
    return [f"{number} {label}" for number, label in enumerate(labels, first)]


def visible(text: str, *, keep_spaces: bool = False) -> str:
    """Return ``text`` with hidden characters as signs or code points, spaces too unless ``keep_spaces``."""
    shown = "".join(_sign(character, keep_spaces) for character in text)
    # a combining mark needs something to sit on, or it changes the character before the label
    return "◌" + shown if shown and unicodedata.combining(shown[0]) else shown


def escape(text: str) -> str:
    """Return ``text`` for plotly: hidden characters visible and ``<b>``, ``</s>``, ``&`` literal. Spaces stay."""
    return html.escape(visible(text, keep_spaces=True), quote=False)


def _sign(character: str, keep_spaces: bool) -> str:
    if character == " ":
        return " " if keep_spaces else SPACE
    if character in _SIGNS:
        return _SIGNS[character]
    if unicodedata.category(character) in _HIDDEN or _BLANK.match(character):
        return f"⟨U+{ord(character):04X}⟩"
    return character

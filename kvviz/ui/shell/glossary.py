"""What the field's words mean, one sentence each, as the tooltip where a page first uses them."""

from __future__ import annotations

import re
from functools import cache

from kvviz.text.prose import prose

# knobs whose label alone does not say enough, and the word that explains them
KNOBS = {
    "budget": "budget",
    "sinks": "sink",
    "observe": "observation window",
    "window": "window",
    "dilation": "dilation",
    "residual": "residual",
}


@cache
def glossary() -> dict[str, str]:
    """Every word and its sentence."""
    return dict(re.findall(r"^\*\*(.+?)\*\*: (.+)$", prose("glossary"), re.MULTILINE))


def meaning(*words: str) -> str:
    """The sentences for some words, each led by its word, for ``help=``."""
    return "  \n".join(f"**{word[:1].upper()}{word[1:]}**: {glossary()[word]}" for word in words)


def knob_meaning(knob: str) -> str | None:
    """The same for a knob, where it needs one."""
    return meaning(KNOBS[knob]) if knob in KNOBS else None

"""What a choice with knobs is, and how it is spelled; imports nothing of kvviz."""

from kvviz.knobs.fields import BUDGET_LIMIT, Choice, fitted, knob, numbers, spell_value, suggestion, switch, word
from kvviz.knobs.spelling import describe_knobs, parse, spell

__all__ = [
    "BUDGET_LIMIT",
    "Choice",
    "describe_knobs",
    "fitted",
    "knob",
    "numbers",
    "parse",
    "spell",
    "spell_value",
    "suggestion",
    "switch",
    "word",
]

"""What the menus of the five choices offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvviz.choices.patterns import PATTERNS
from kvviz.choices.storage import STORAGES
from kvviz.policies import POLICIES

POSITION_WORDS = {"original": "original (as in the text)", "slot": "slot (rank in the cache)"}
SOFTMAX_WORDS = {"standard": "standard (sums to 1)", "off_by_one": "off by one (may sum to less than 1)"}
# the five choices: what the menu is called, and what it offers (classes with knobs, or words)
MENUS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "policy": ("Policy", POLICIES),
    "pattern": ("Pattern: what may be seen", PATTERNS),
    "positions": ("Positions of kept keys", POSITION_WORDS),
    "storage": ("Storage", STORAGES),
    "softmax": ("Softmax", SOFTMAX_WORDS),
}

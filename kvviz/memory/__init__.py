"""Bytes of a KV cache for any model, from whole numbers; the standard library is enough for it.

May import choices, knobs, text and (to ask what a policy keeps) policies.
"""

from kvviz.memory.account import Account, Ask, Row, account
from kvviz.memory.config import read_config
from kvviz.memory.presets import PRESETS, preset
from kvviz.memory.shape import NUMBER_BYTES, Group, Shape

__all__ = [
    "NUMBER_BYTES",
    "PRESETS",
    "Account",
    "Ask",
    "Group",
    "Row",
    "Shape",
    "account",
    "preset",
    "read_config",
]

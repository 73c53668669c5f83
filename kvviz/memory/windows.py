"""How many tokens a sliding layer holds, whichever field says it."""

from __future__ import annotations

from kvviz.memory.families import PREVIOUS_TOKENS
from kvviz.memory.fields import Fields


def window_of(fields: Fields, family: str) -> int | None:
    """Tokens a query of a sliding layer sees, its own among them; None where there is no window or it is off."""
    if fields.flag("use_sliding_window") is False:
        return None
    both_sides = fields.whole("local_attention", least=-1)
    if both_sides is not None and fields.get("sliding_window") is None:
        return max(0, both_sides) // 2 or None  # ModernBERT: half of it lies before the query
    if (before := fields.whole(PREVIOUS_TOKENS.get(family, ""))) is not None:
        return before + 1
    window = fields.any_of("window", least=-1)
    return None if window is None or window < 1 else window  # 0 and -1 are spellings of none

"""How sure a share of successes is."""

from __future__ import annotations

import math

NORMAL_95 = 1.959963984540054  # the normal quantile that leaves 2.5 % above


def wilson(found: int, of: int, quantile: float = NORMAL_95) -> tuple[float, float]:
    """The interval of the true share after ``found`` of ``of`` tries, by default with 95 % confidence.

    (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n). Source: Wilson, Probable Inference, 1927. Raises ValueError for
    no tries, or more found than tried.
    """
    if not 0 <= found <= of or of < 1:
        raise ValueError(f"{found} of {of} tries is no share; give at least one try, and no more found than tried.")
    share, spread = found / of, quantile**2 / of
    middle = share + spread / 2
    half = quantile * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    low, high = (middle - half) / (1 + spread), (middle + half) / (1 + spread)
    return (0.0 if found == 0 else low), (1.0 if found == of else high)

"""What the component page shows, for the tests to compare with."""

import numpy as np
from numpy.typing import NDArray

HOSTILE = ["<img src=x onerror=alert(1)>", "</s>", "$x$", "<b>bold</b>", "␣a", "␣a", ":red[x]", "刚"]
COUNT = 40
TOKENS = [HOSTILE[place % len(HOSTILE)] for place in range(COUNT)]


def lifetimes(seed: int) -> NDArray[np.integer]:
    """(2, T) random lifetimes, each token in the cache for at least its own step."""
    random = np.random.default_rng(seed)
    return np.minimum(np.arange(COUNT) + 1 + random.integers(0, 12, (2, COUNT)), COUNT)


def streaming_role(position: int, newest: int) -> str:
    return "sink" if position < 4 else "recent"

"""Random attention and lifetimes, and labels that try to break out of a figure."""

import numpy as np

HOSTILE = ["<b>bold</b>", "</s>", "<script>alert(1)</script>", "&amp;", '"', "%{x}", "a", "a", "a", "$x$"]


def labels(count, first=0):
    return [f"{number} {HOSTILE[number % len(HOSTILE)]}" for number in range(first, first + count)]


def attention(count, window=None, seed=0):
    """(T, T) rows that sum to 1 over the keys they can see; NaN elsewhere."""
    scores = np.random.default_rng(seed).normal(size=(count, count)) * 2
    distance = np.arange(count)[:, None] - np.arange(count)
    visible = (distance >= 0) & (distance < (window or count))
    powers = np.where(visible, np.exp(scores), 0)
    return np.where(visible, powers / powers.sum(axis=1, keepdims=True), np.nan).astype(np.float32)


def random_lifetimes(count, seed=0):
    came = np.arange(count)
    return np.minimum(came + 1 + np.random.default_rng(seed).integers(0, count, count), count)


def window_lifetimes(count, budget):
    return np.minimum(np.arange(count) + budget, count)

"""Long texts drawn small: blocks of a matrix become one cell, and the figure says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

LIMIT = 512  # rows or columns a figure draws; 512 × 512 float32 are 1.8 MB


def pool(
    weights: NDArray[np.floating], limit: int = LIMIT, how: Literal["max", "mean"] = "max"
) -> tuple[NDArray[np.float32], int]:
    """Shrink a (Q, T) matrix to at most ``limit`` rows and columns; returns it and the side of the pooled blocks.

    A block becomes its largest value (a single strong weight stays visible) or the mean of its values. NaN means not
    there and is left out; a block of nothing but NaN stays NaN. A factor of 1 means nothing was pooled.
    """
    factor = pool_factor(max(weights.shape), limit)
    if factor == 1:
        return np.asarray(weights, dtype=np.float32), 1
    blocks = in_blocks(np.asarray(weights, dtype=np.float32), factor)
    if how == "max":
        return np.fmax.reduce(np.fmax.reduce(blocks, axis=3), axis=1), factor
    there = np.isfinite(blocks)
    count = there.sum(axis=(1, 3), dtype=np.float32)
    total = np.where(there, blocks, 0).sum(axis=(1, 3))
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0), factor


def pool_factor(length: int, limit: int = LIMIT) -> int:
    """The smallest block side that brings ``length`` down to ``limit``."""
    if limit < 1:
        raise ValueError(f"The limit must be at least 1, not {limit}.")
    return max(1, -(-length // limit))


def in_blocks(matrix: NDArray[np.float32], factor: int) -> NDArray[np.float32]:
    """(Q, T) as (rows, factor, columns, factor); what is missing at the edges is NaN."""
    rows, columns = (-(-length // factor) for length in matrix.shape)
    padded = np.full((rows * factor, columns * factor), np.nan, dtype=np.float32)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded.reshape(rows, factor, columns, factor)


def pooled_columns(values: NDArray[np.floating], factor: int) -> NDArray[np.float32]:
    """The largest of every ``factor`` columns; a block of nothing but NaN stays NaN."""
    rows, columns = values.shape
    blocks = np.full((rows, -(-columns // factor) * factor), np.nan, dtype=np.float32)
    blocks[:, :columns] = values
    return np.fmax.reduce(blocks.reshape(rows, -1, factor), axis=2)


def pool_labels(labels: Sequence[str], factor: int) -> list[str]:
    """One label per block: that of its first token, with a sign that more follow."""
    return list(labels) if factor == 1 else [f"{label} …" for label in labels[::factor]]


def pool_notice(factor: int, what: str) -> str:
    """The sentence a pooled figure shows; nothing where nothing was pooled."""
    return "" if factor == 1 else f"Each cell covers {factor} × {factor} tokens and shows {what}."

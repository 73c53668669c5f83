"""How much attention the first tokens take, from the weights kept of them: by layer and head, along the text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kvviz.policies.streaming import SINKS as SINKS  # said once, and passed on

Floats = NDArray[np.floating]


def sink_share(first_weights: Floats, sinks: int, since: int) -> Floats:
    """Mean share on the first ``sinks`` tokens over the queries from ``since`` on, (L, A, Q, F) → (L, A).

    With the ordinary softmax this is also their share of its denominator: w_j = e^{x_j} / Σ e^{x_i}. Where no query
    is that late, the last one counts.
    """
    late = first_weights[:, :, min(since, first_weights.shape[2] - 1) :, :sinks].sum(-1)
    return mean_known(late)


def sink_mass_along(first_weights: Floats, sinks: int, layer: int) -> Floats:
    """The share on the first ``sinks`` tokens of every query, mean over the layer's heads, (L, A, Q, F) → (Q,)."""
    return mean_known(first_weights[layer, :, :, :sinks].sum(-1).T)


def mean_known(values: Floats) -> Floats:
    """The mean over the last axis of what was computed; NaN where nothing was."""
    known = np.isfinite(values)
    total = np.where(known, values, 0).sum(-1)
    count = known.sum(-1)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def growth(first_weights: Floats, sinks: int, since: int) -> Floats:
    """How many times each row's other weights grow when the first tokens leave: 1 / (1 − share), (A, Q, F) → (N,).

    The rows are those of all heads and of the queries from ``since`` on that have other tokens to look at. Shares are
    float32: a row that leaves the others less than 1e-7 counts as 1e-7.
    """
    queries = first_weights.shape[1]
    rows = first_weights[:, max(min(since, queries - 1), sinks) :, :sinks].sum(-1, dtype=np.float64).ravel()
    factors: Floats = 1 / np.maximum(1 - rows[np.isfinite(rows)], 1e-7)
    return factors

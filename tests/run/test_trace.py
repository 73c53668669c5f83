from __future__ import annotations

import numpy as np
import pytest

from kvviz.choices.setup import Setup
from kvviz.choices.storage import Widths
from kvviz.run.trace import Trace


def trace_of(evicted_at: list[list[list[int]]]) -> Trace:
    lifetimes = np.array(evicted_at, dtype=np.int32)
    tokens = lifetimes.shape[-1]
    stored = ((lifetimes.shape[1], Widths(3, 1, 4)),) * len(lifetimes)
    losses = np.zeros(tokens - 1)
    return Trace("replayed", Setup(), np.arange(tokens), 1, lifetimes, losses, lifetimes, stored, 0, 0.0, 4)


def test_lifetimes_tell_what_is_held_at_every_step() -> None:
    trace = trace_of([[[4, 2, 3, 4]]])
    held = [trace.kept(0, 0, step).tolist() for step in range(4)]
    assert held == [[0], [0, 1], [0, 2], [0, 3]]
    assert trace.entries()[0, 0].tolist() == [1, 2, 2, 2]
    assert trace.bytes_at().tolist() == [16, 32, 32, 32]


def test_entries_agree_with_kept_on_random_lifetimes() -> None:
    generator = np.random.default_rng(0)
    lifetimes = np.minimum(np.arange(9) + generator.integers(1, 9, (2, 3, 9)), 9)
    trace = trace_of(lifetimes.tolist())
    for layer in range(2):
        for head in range(3):
            counts = [len(trace.kept(layer, head, step)) for step in range(9)]
            assert trace.entries()[layer, head].tolist() == counts


def test_a_trace_cannot_be_written() -> None:
    trace = trace_of([[[2, 2]]])
    with pytest.raises(ValueError, match="read-only"):
        trace.evicted_at[0, 0, 0] = 1

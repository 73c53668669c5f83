"""Step times and bytes read: the limit is drawn where it is, and the numbers are in the table."""

from __future__ import annotations

import pytest

from kvviz.figures.speed import Steps, bytes_read, step_times

MIB = 2**20
A = Steps("A: window", "a", (64, 128), (0.05, 0.05), (0.04, 0.05), (0.06, 0.08), (MIB, MIB))
B = Steps("B: full", "b", (64, 128), (0.05, 0.07), (0.05, 0.07), (0.05, 0.07), (2 * MIB, 4 * MIB))


def test_the_limit_is_weights_and_cache_by_the_bandwidth() -> None:
    assert B.limits(98 * MIB, 1000 * MIB) == pytest.approx([0.1, 0.102])
    drawing = step_times([A, B], 98 * MIB, 1000 * MIB, title="Steps")
    lines = {trace.name: list(trace.y) for trace in drawing.figure.data}
    assert lines["B: full"] == pytest.approx([50, 70])
    assert lines["B: reading weights and cache alone"] == pytest.approx([100, 102])
    assert list(drawing.figure.data[0].error_y.array) == pytest.approx([10, 30])
    assert drawing.figure.layout.yaxis.title.text == "time of a step (ms)"
    assert drawing.alt == "Steps; A: window: 50 ms at 128 tokens; B: full: 70 ms at 128 tokens."
    setup, tokens, *numbers = list(drawing.table.rows())[3]
    assert (setup, tokens) == ("B: full", "128") and [float(n) for n in numbers] == pytest.approx([70, 70, 70, 102])


def test_weights_are_flat_and_the_cache_grows() -> None:
    drawing = bytes_read([A, B], 98 * MIB)
    lines = {trace.name: list(trace.y) for trace in drawing.figure.data}
    assert lines["weights"] == [98, 98] and lines["cache, A: window"] == [1, 1] and lines["cache, B: full"] == [2, 4]
    assert "cache, B: full: 4 MiB at 128 tokens" in drawing.alt

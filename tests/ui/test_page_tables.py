"""What the pages offer to download, on a tiny model: the data of the run, whatever the figures show of it."""

from __future__ import annotations

import csv
import io

import numpy as np

from kvviz.choices.setup import parse_setup
from kvviz.figures import Drawing
from kvviz.memory import Ask, account, preset
from kvviz.run.replay import replay
from kvviz.text.signs import unique_labels
from kvviz.ui.attention.agreement import steps_drawing
from kvviz.ui.attention.figures import difference_figure, map_figures
from kvviz.ui.cache.view import held_figure, lifetimes_figure
from kvviz.ui.memory.view import Bill, bills_table
from kvviz.ui.shell.runs import Run
from kvviz.ui.sinks.figures import along_figure, mass_along, norms_figure
from tests.tiny import some_ids, tiny

TOKENS = 30
LABELS = unique_labels(["</s>", "a"] * (TOKENS // 2), 1)


def run_of(policy: str) -> Run:
    setup, maps = parse_setup({"policy": policy}), [(1, head) for head in range(4)]
    trace = replay(tiny("llama"), some_ids(TOKENS).tolist(), setup, measure=True, maps=maps)
    return Run(trace, ["</s>", "a"] * (TOKENS // 2), LABELS, 1, ())


A, B = run_of("window:budget=6"), run_of("full")


def rows_of(drawing: Drawing) -> list[list[str]]:
    return list(csv.reader(io.StringIO(drawing.table.csv())))


def numbers(drawing: Drawing) -> np.ndarray:
    """Without the labels, float64; the shortest digits bring back the float32 too."""
    return np.array([[float(cell) if cell else np.nan for cell in row[1:]] for row in rows_of(drawing)[1:]])


def test_maps_and_their_difference() -> None:
    maps = [run.trace.maps[1, 2] for run in (A, B)]
    for drawing, weights in zip(map_figures((A, B), maps, "no_sinks"), maps, strict=True):
        assert rows_of(drawing)[0][1:] == [row[0] for row in rows_of(drawing)[1:]] == LABELS
        np.testing.assert_array_equal(numbers(drawing).astype(np.float32), weights)
    difference = numbers(difference_figure(A, maps, "layer 1", "no_sinks")).astype(np.float32)
    np.testing.assert_array_equal(difference, maps[0] - maps[1])


def test_lifetimes_of_every_kv_head_of_the_layer() -> None:
    drawing = lifetimes_figure(A, 1, 1, "a", "A")
    assert rows_of(drawing)[0][1:] == [f"evicted_at, KV head {head} (T = 30: still held)" for head in range(2)]
    np.testing.assert_array_equal(numbers(drawing), A.trace.evicted_at[1].T)
    assert [row[0] for row in rows_of(drawing)[1:]] == LABELS


def test_entries_and_bytes_step_by_step() -> None:
    entries = [("A", "a", A.trace.entries()[1, 0]), ("B", "b", B.trace.entries()[1, 0])]
    held = [("A", "a", A.trace.bytes_at()), ("B", "b", B.trace.bytes_at())]
    for drawing, lines in (
        (held_figure(A, entries, "entries", ""), entries),
        (held_figure(A, held, "bytes", ""), held),
    ):
        assert rows_of(drawing)[0] == ["step", "A", "B"] and [row[0] for row in rows_of(drawing)[1:]] == LABELS
        cells = [row[1:] for row in rows_of(drawing)[1:]]
        assert cells == [[str(number) for number in pair] for pair in zip(*(line[2] for line in lines), strict=True)]


def test_lines_along_the_text_are_not_smoothed() -> None:
    along = along_figure(A, B, 4, 1)
    np.testing.assert_array_equal(numbers(along)[:, 0], mass_along(A, 4, 1))
    shares = [np.linspace(0, 1, TOKENS) ** 2, np.linspace(1, 0, TOKENS)]
    np.testing.assert_array_equal(numbers(steps_drawing(A, B, shares, 1, 2)), np.stack(shares, 1))
    assert A.trace.value_norm is not None
    norms = numbers(norms_figure(A, "values", 1, 0))[:, 0].astype(np.float32)
    np.testing.assert_array_equal(norms, A.trace.value_norm[1, 0])


def test_bills_have_a_row_a_setup_and_group_of_layers() -> None:
    shape = preset("gemma-3-27b")
    found = [Bill(name, None, "", ask, account(shape, ask)) for name, ask in (("whole", Ask(4096)), ("A", Ask(64)))]
    header, *rows = csv.reader(io.StringIO(bills_table(found).csv()))
    assert header == ["setup", "kind", "layers", "tokens_held", "bytes", "formula"]
    assert rows == [
        [bill.name, row.kind, str(row.layers), str(row.entries), str(row.bytes), row.words]
        for bill in found
        for row in bill.account.rows
    ]

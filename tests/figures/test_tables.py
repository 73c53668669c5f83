"""The data behind each figure: what was passed in, at full precision, whatever the figure pools, smooths or cuts."""

import csv
import io

import numpy as np
import pytest

from kvviz import figures
from kvviz.figures.bars import bars
from kvviz.figures.context import Line, bytes_against_context
from kvviz.figures.distance import distance_lines
from kvviz.figures.memory import Box, memory_boxes
from kvviz.figures.reach import cone_map, depth_map, parts_map
from kvviz.figures.scores import score_bars
from tests.figures.examples import attention, labels, random_lifetimes

NAN = np.nan


def rows_of(drawing):
    return list(csv.reader(io.StringIO(drawing.table.csv())))


def numbers(rows):
    return np.array([[float(cell) if cell else NAN for cell in row] for row in rows])


def test_a_pooled_map_has_every_weight_behind_it_the_sinks_too():
    weights = attention(600, window=20)
    drawing = figures.attention_map(weights, labels(600), scale="no_sinks", top=0.5)
    header, *rows = rows_of(drawing)
    assert drawing.figure.data[0].z.shape == (300, 300)
    assert header == ["query", *labels(600)] and [row[0] for row in rows] == labels(600)
    np.testing.assert_array_equal(numbers([row[1:] for row in rows]).astype(np.float32), weights)


def test_a_map_of_later_queries_names_them():
    header, *rows = rows_of(figures.attention_map(attention(8)[6:], labels(8), first_query=6))
    assert [row[0] for row in rows] == labels(8)[6:] and header[1:] == labels(8)


def test_a_difference_is_not_pooled_and_nothing_is_left_out():
    a, b = attention(600), attention(600, window=30, seed=1)
    rows = rows_of(figures.difference_map(a, b, labels(600), sinks=4))[1:]
    np.testing.assert_array_equal(numbers([row[1:] for row in rows]).astype(np.float32), a - b)


def test_a_mask_is_zeros_and_ones():
    assert rows_of(figures.visibility(np.tri(2, dtype=bool), ["0 a", "1 <b>"])) == [
        ["query", "0 a", "1 <b>"],
        ["0 a", "1", "0"],
        ["1 <b>", "1", "1"],
    ]


def test_layers_and_heads_are_named():
    values = np.array([[0.1, NAN], [0.3, 1 / 3]])
    expected = [["layer", "head 0", "head 1"], ["layer 0", "0.1", ""], ["layer 1", "0.3", str(1 / 3)]]
    assert rows_of(figures.layer_head_grid(values, name="sink mass", unit="share")) == expected
    assert [row[1:] for row in rows_of(figures.agreement_grid(values))] == [row[1:] for row in expected]


@pytest.mark.parametrize("head", [0, 1])
def test_the_lifetimes_of_all_kv_heads_stand_behind_the_one_drawn(head):
    evicted_at = np.stack([random_lifetimes(600), random_lifetimes(600, seed=1)])
    drawing = figures.lifetimes(evicted_at, labels(600), head=head)
    header, *rows = rows_of(drawing)
    assert header == ["token", *(f"evicted_at, KV head {h} (T = 600: still held)" for h in range(2))]
    assert [row[0] for row in rows] == labels(600)
    assert [[int(cell) for cell in row[1:]] for row in rows] == evicted_at.T.tolist()
    alone = figures.lifetimes(evicted_at[head], labels(600))
    assert alone.figure == drawing.figure and alone.alt == drawing.alt
    assert [row[1] for row in rows_of(alone)[1:]] == [row[1 + head] for row in rows]


def test_bytes_stay_bytes_and_entries_whole():
    held = [("<A>", "a", np.array([2**20, 2**30 + 1])), ("B", "b", np.array([1, 2]))]
    drawing = figures.entries_over_time(held, "bytes", labels=labels(2))
    assert rows_of(drawing) == [["step", "<A>", "B"], ["0 <b>bold</b>", "1048576", "1"], ["1 </s>", "1073741825", "2"]]
    assert "GiB" in drawing.figure.layout.yaxis.title.text
    assert rows_of(figures.entries_over_time(held, count_from=1))[1:] == [
        ["1", "1048576", "1"],
        ["2", "1073741825", "2"],
    ]


def test_lines_are_not_smoothed_and_a_short_one_ends_with_empty_cells():
    series = [("A", "a", np.array([0.5, NAN, 2.0])), ("B", "b", np.array([1 / 3], dtype=np.float32))]
    drawing = figures.series_lines(series, y_title="loss", x_title="query (position)", smooth_over=3)
    assert rows_of(drawing) == [["query", "A", "B"], ["0", "0.5", "0.33333334"], ["1", "", ""], ["2", "2.0", ""]]


def test_distances_keep_what_is_exactly_zero_and_the_float64():
    values = np.array([1 / 3, 0.0, 1e-9])
    assert rows_of(distance_lines([("A", "a", values)])) == [
        ["distance", "A"],
        ["0", "0.3333333333333333"],
        ["1", "0.0"],
        ["2", "1e-09"],
    ]


def test_bars_and_scores_have_their_names_whole():
    assert rows_of(bars(["full", "a & b"], [1.5, NAN], unit="nats", axis="loss")) == [
        ["name", "loss (nats)"],
        ["full", "1.5"],
        ["a & b", ""],
    ]
    name = "12 a token that is longer than an axis has room for"
    rows = rows_of(score_bars(np.array([1 / 3]), np.array([True]), [name], y_title="score"))
    assert rows[0][:2] == ["token", "score"] and rows[1] == [name, str(1 / 3), "1"]


def test_shares_of_a_depth_and_what_can_matter_come_unpooled():
    tokens = 1100
    found, reach = np.random.default_rng(0).random((2, tokens)), np.arange(tokens) > np.array([[1000], [500]])
    header, *rows = rows_of(depth_map(found, reach, [1, 4], labels(tokens)))
    assert header[0] == "layers passed through" and header[1 : tokens + 1] == labels(tokens)
    assert [row[0] for row in rows] == ["1", "4"]
    np.testing.assert_array_equal(numbers([row[1 : tokens + 1] for row in rows]), found)
    np.testing.assert_array_equal(numbers([row[tokens + 1 :] for row in rows]), reach)


def test_a_cone_has_its_path_and_parts_run_from_top_to_bottom():
    found, reach = np.full((2, 3), 0.25), np.ones((2, 3), dtype=bool)
    rows = rows_of(cone_map(found, reach, labels(3), path=[0, 2]))
    assert rows[0][-1] == "strongest path" and [row[-1] for row in rows[1:]] == [labels(3)[0], labels(3)[2]]
    assert [row[:4] for row in rows[1:]] == [["0", *["0.25"] * 3], ["1", *["0.25"] * 3]]
    parts = {"attention": found[0], "FFN": np.array([0, 0, 1.0])}
    assert rows_of(parts_map(parts, labels(3)))[1:] == [["attention", *["0.25"] * 3], ["FFN", "0.0", "0.0", "1.0"]]


def test_every_slot_of_a_ring_and_every_box_is_a_row():
    rows = rows_of(figures.ring([8, 9], 4, labels(10), newest=9))
    assert rows == [["slot", "token"], ["0", labels(10)[8]], ["1", labels(10)[9]], ["2", ""], ["3", ""]]
    box = Box("all", 1000, 32, 512.5, ("1,000 tokens", "32 heads", "512.5 B"), "× 3 layers")
    assert rows_of(memory_boxes([box]))[1] == ["all", "1000", "32", "512.5", "× 3 layers"]


def test_bytes_against_context_are_whole_bytes():
    lines = [Line("A", (2**30 + 1, 0), "a"), Line("other", (3, 4))]
    assert rows_of(bytes_against_context([1024, 2048], lines, [], here=1024)) == [
        ["tokens", "A (bytes)", "other (bytes)"],
        ["1024", "1073741825", "3"],
        ["2048", "0", "4"],
    ]

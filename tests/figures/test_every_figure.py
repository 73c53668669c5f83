"""What holds for every figure: alt text, escaped labels, typed arrays, small payloads, clear grounds."""

import csv
import io
import json

import numpy as np
import plotly.io as pio
import pytest

from kvviz import figures
from kvviz.figures.bars import bars
from kvviz.figures.channels import channel_errors, coded_group
from kvviz.figures.context import Line, bytes_against_context
from kvviz.figures.distance import distance_lines
from kvviz.figures.exactness import GapLine, angle_map, change_map, gap_lines, mask_map
from kvviz.figures.gone import gone_map
from kvviz.figures.limits import limit_table
from kvviz.figures.memory import Box, memory_boxes
from kvviz.figures.needles import loss_by_depth, needle_grid
from kvviz.figures.prefixes import Branch, pool_grid, radix_tree
from kvviz.figures.reach import cone_map, depth_map, parts_map
from kvviz.figures.scores import score_bars
from kvviz.figures.sweep import Kept, loss_against_bytes
from kvviz.figures.tradeoff import Setting, trade_off
from kvviz.figures.tree import Node, draft_tree
from kvviz.figures.tree_slots import accepted_bars, step_slots, tree_mask
from kvviz.figures.weights import way_bars
from tests.figures.examples import attention, labels, random_lifetimes


def two_rows(count):
    """Shares and reach of two depths."""
    return np.full((2, count), 1 / count), np.ones((2, count), dtype=bool)


def every_figure(count):
    names = labels(count)
    steps = np.arange(1, count + 1)
    return {
        "attention_map": figures.attention_map(attention(count), names, title="<i>A</i>"),
        "no_sinks": figures.attention_map(attention(count), names, scale="no_sinks", top=0.5),
        "difference_map": figures.difference_map(attention(count), attention(count, window=3), names),
        "layer_head_grid": figures.layer_head_grid(np.random.default_rng(0).random((30, 9)), name="x", unit="share"),
        "agreement_grid": figures.agreement_grid(np.random.default_rng(0).random((9, 9)), group=3),
        "bars": bars(["full cache", "<b>window</b>"], [3.2, 4.4], unit="nats", axis="loss"),
        "score_bars": score_bars(steps * 0.1, steps > 3, names, y_title="score"),
        "lifetimes": figures.lifetimes(random_lifetimes(count), names),
        "visibility": figures.visibility(np.tri(count, dtype=bool), names),
        "entries_over_time": figures.entries_over_time([("<b>A</b>", "a", steps), ("B", "b", steps)]),
        "series_lines": figures.series_lines([("A", "a", steps * 0.5)], y_title="loss (nats per token)"),
        "depth_map": depth_map(*two_rows(count), [1, 2], names, title="<i>A</i>", mark=2),
        "cone_map": cone_map(*two_rows(count), names, path=[0, count - 1]),
        "distance_lines": distance_lines([("<b>A</b>", "a", two_rows(count)[0][0])]),
        "parts_map": parts_map({"attention": two_rows(count)[0][0], "FFN": two_rows(count)[0][1]}, names),
        "memory_boxes": memory_boxes([Box("<b>all</b>", count, 8, 512, ("t", "h", "B"), "× 3 layers")], title="<i>A"),
        "bytes_against_context": bytes_against_context([1, count + 1], [Line("<i>A", (1, 2), "a")], [], here=count),
        "gone_map": gone_map(np.full((3, count), 0.1), names, title="<i>A</i>"),
        "limit_table": limit_table(["<b>h2o"], ["<i>A"], {("<b>h2o", "<i>A"): 16}, [16, 32]),
        "needle_grid": needle_grid(["<b>A"], [0, 100], np.eye(2)[:1], np.array([[np.nan, 0.1]]), tries=2, pairs=9),
        "loss_by_depth": loss_by_depth([("<b>A", "a", steps[:1] * 0.5)], [0]),
        "loss_against_bytes": loss_against_bytes([Kept("<b>h2o", "<i>A", 10, 2.0)], Kept("full", "all", 20, 1.0)),
        "trade_off": trade_off([Setting("<b>h2o", "<i>A", 0.5, 1.0, "<b>A")], axis="loss", is_more_better=False),
        "gap_lines": gap_lines([GapLine("<b>A", "a", steps * 1e-5, 0), GapLine("<i>B", "b", steps * 0.1)], 3, 2e-4),
        "change_map": change_map(np.full((3, count), 0.1), names, title="<i>A"),
        "mask_map": mask_map(np.tri(count, 2 * count, dtype=bool), np.tri(count, 2 * count, count, dtype=bool), count),
        "angle_map": angle_map(np.outer(steps, [1.0, 0.1]), names),
        "way_bars": way_bars(names, {"<b>A": steps / count, "B": steps / count}, ["a", "b"], title="<i>A"),
        "channel_errors": channel_errors(steps * 1.0, steps * 0.1, steps * 0.2, 1.5, title="<i>A"),
        "coded_group": coded_group(steps * 1.0, steps.tolist(), steps * 1.1, np.arange(4.0), steps.tolist(), "channel"),
        "draft_tree": draft_tree("<b>", [Node("<i>", -1, 1, True, 0.1), Node("b", 0, 2, False, 0.0)], added="</s>"),
        "tree_mask": tree_mask(np.tri(3, 5, 2, dtype=bool), labels(5), 2, title="<i>A"),
        "step_slots": step_slots(labels(5), 2, [0, 2], title="<i>A"),
        "accepted_bars": accepted_bars([3, 4], [1, 0], 1, title="<i>A"),
        "radix_tree": radix_tree(
            [Branch(0, 9, 0.5, None, 4, True, "<b>", ()), Branch(9, 12, 0, 0.5, 4, False, "<i>", (1,))]
        ),
        "pool_grid": pool_grid([(0, 2, 16), (25, 0, 16)], 16, title="<i>A"),
        "ring": figures.ring(range(max(count - 4, 0), count), 4, names, newest=count - 1),
    }


FIGURES = every_figure(30)


@pytest.mark.parametrize("name", FIGURES)
def test_it_has_alt_text_with_a_number(name):
    alt = FIGURES[name].alt
    assert FIGURES[name].figure.layout.meta["alt"] == alt
    assert any(sign.isdigit() for sign in alt) and alt.endswith(".")


def test_zoom_is_kept_for_the_same_tokens_and_dropped_for_others():
    """Known fault 158: the zoom is lost at every rerun, or kept when the tokens change."""
    again, other = every_figure(30), every_figure(20)
    for name, drawing in FIGURES.items():
        kind = drawing.figure.layout.uirevision
        assert kind and kind == again[name].figure.layout.uirevision
    for name in ("attention_map", "difference_map", "lifetimes", "visibility", "entries_over_time", "series_lines"):
        assert FIGURES[name].figure.layout.uirevision != other[name].figure.layout.uirevision


@pytest.mark.parametrize("name", FIGURES)
def test_it_leaves_ground_and_fonts_to_the_page(name):
    layout = FIGURES[name].figure.layout
    assert layout.paper_bgcolor == "rgba(128,128,128,0)"
    assert layout.font.color is None and not layout.template.layout.to_plotly_json()


@pytest.mark.parametrize("name", FIGURES)
def test_axes_have_titles(name):
    layout = FIGURES[name].figure.layout
    if name == "bars":  # its names say what they are
        assert layout.xaxis.title.text
    elif name not in ("ring", "memory_boxes"):
        assert layout.xaxis.title.text and layout.yaxis.title.text


@pytest.mark.parametrize("name", FIGURES)
def test_no_token_reaches_the_figure_as_markup(name):
    """Known fault 153: a token that looks like markup is taken as markup."""
    text = json.dumps(json.loads(FIGURES[name].figure.to_json()), ensure_ascii=False)
    text = text.replace(json.dumps(FIGURES[name].alt, ensure_ascii=False), "")  # plain text, not drawn
    for markup in ("<b>bold", "</s>", "<script", "<i>A"):
        assert markup not in text
    if name in ("attention_map", "lifetimes", "visibility"):
        assert "&lt;/s&gt;" in text and "&amp;amp;" in text


@pytest.mark.parametrize("name", every_figure(1))
def test_one_token_is_enough(name):
    assert every_figure(1)[name].figure.to_json()


@pytest.mark.parametrize(
    ("name", "dtype", "limit"),
    [
        ("attention_map", "f4", 2_000_000),
        ("no_sinks", "f4", 2_000_000),
        ("difference_map", "f4", 2_000_000),
        ("lifetimes", "u1", 1_000_000),
        ("visibility", "u1", 1_000_000),
    ],
)
def test_512_tokens_travel_as_typed_arrays(name, dtype, limit):
    """Known fault 132: a map of some hundred tokens is too large for the browser."""
    fig = every_figure(512)[name].figure
    text = fig.to_json()
    sent = json.loads(text)["data"][0]["z"]
    assert len(text) < limit
    assert sent["dtype"] == dtype and isinstance(sent["bdata"], str)
    assert fig.data[0].z.shape == (512, 512)


def test_the_default_template_of_another_library_does_not_travel_along(monkeypatch):
    monkeypatch.setattr(pio.templates, "default", "plotly_dark")
    assert every_figure(5)["lifetimes"].figure.layout.template.layout.font.color is None
    assert len(every_figure(5)["lifetimes"].figure.to_json()) < 6_000


@pytest.mark.parametrize("name", FIGURES)
def test_its_numbers_come_as_csv(name):
    rows = list(csv.reader(io.StringIO(FIGURES[name].table.csv())))
    assert len(rows) > 1 and len({len(row) for row in rows}) == 1

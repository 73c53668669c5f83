"""The Receptive field page on the real model, without a browser."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvviz.choices.setup import parse_setup
from kvviz.ui.receptive_field.bounds import formula_words
from kvviz.ui.shell.runs import WORKER
from tests.ui.test_pages import BAD, SHORT, TOY, charts, checked, headline, numbers, opened, said

pytestmark = pytest.mark.real
PAGE = "pages/3_Receptive_field.py"
RELAY = {**TOY, "query": "7", "layer": "1", "policy": "window:budget=3", "b_policy": "full", "reach_from": "3"}


def words(at: Any) -> str:
    return " ".join(text.value.replace("\\", "") for text in at.markdown)


def calculated(at: Any) -> str:
    return next(text.value for text in at.markdown if "**Exact:**" in text.value)


def names(at: Any) -> list[str]:
    return [json.loads(chart.spec)["layout"]["uirevision"].partition(" ")[0] for chart in charts(at)]


def test_the_sources_relay_4_6_8() -> None:
    at = opened(PAGE, **RELAY)
    assert "Through 2 layers (0–1) token 8 ‘␣eight’ can depend on 5 positions (its own included)" in headline(at)
    assert "4 ‘␣four’ —layer 0→ 6 ‘␣six’ —layer 1→ 8 ‘␣eight’" in words(at)
    assert "2 · (3 − 1) + 1 = 5; papers round to L · w = 2 · 3 = 6" in words(at)
    assert sorted(names(at)) == ["cone", "depths", "distance"]
    at = opened(PAGE, **RELAY, reach_part="sublayers")
    assert "FFN and residual exactly none" in words(at)
    assert sorted(names(at)) == ["cone", "depths", "parts"]


def test_layer_5_under_window_32_and_the_page_weighs_little() -> None:
    at = opened(PAGE, text="story", tokens="170", layer="4", policy="window:budget=32")
    assert "Through 5 layers (0–4)" in headline(at) and "depend on 156 positions" in headline(at)
    assert "5 · (32 − 1) + 1 = 156" in words(at)
    assert sum(len(chart.spec) for chart in charts(at)) < 1e6


@pytest.mark.parametrize(
    "query",
    [
        {"tokens": "1"},
        BAD | {"tokens": "30"},
        {**SHORT, "policy": "streaming:budget=8,sinks=2", "positions": "slot", "layer": "3"},
        {**SHORT, "policy": "h2o:budget=8,recent=4", "layer": "3", "query": "5000"},
        {**SHORT, "tokens": "16", "policy": "recompute:budget=8", "layer": "2"},
        {**SHORT, "policy": "full", "pattern": "layered:window=4,full_every=3", "layer": "400"},
        {
            **SHORT,
            "policy": "full",
            "pattern": "dilated:window=3,dilation=1/2/4",
            "layer": "2",
            "softmax": "off_by_one",
        },
        {**SHORT, "policy": "window:budget=4", "storage": "int4", "layer": "2", "reach_from": "0"},
    ],
    ids=["one", "bad", "slot", "h2o", "recompute", "hybrid", "dilated", "storage"],
)
def test_it_shows_figures_whatever_the_link(query: dict[str, str]) -> None:
    at = opened(PAGE, **query)
    assert headline(at) and len(charts(at)) == 3
    if query.get("pattern", "").startswith("layered"):
        assert "Layers 2, 5, 8" in words(at)
    if "storage" in query:
        assert "rounding has no gradient" in said(at)


def test_a_repeated_setting_computes_nothing_and_rollout_is_at_hand() -> None:
    at = opened(PAGE, **RELAY)
    before = WORKER.computed
    assert numbers(checked(at)) == numbers(opened(PAGE, **RELAY))
    other = opened(PAGE, **RELAY, reach_by="rollout")
    assert WORKER.computed == before
    assert numbers(other) != numbers(at)


def test_the_calculator_multiplies() -> None:
    at = opened(PAGE, **RELAY, reach_part="calculator")
    assert "32 · (4,096 − 1) + 1 = 131,041" in words(at) and "32 · 4,096 = 131,072" in words(at)
    at.number_input(key="reach_dilation").set_value(2)
    assert "over a span of 32 · (4,096 − 1) · 2 + 1 = 262,081" in words(checked(at))
    assert dict(at.query_params)["reach_dilation"] in ("2", ["2"])
    at.number_input(key="reach_dilation").set_value(None)
    assert "32 · (4,096 − 1) + 1 = 131,041 positions" in words(checked(at)) and "span" not in calculated(at)


@pytest.mark.parametrize(
    ("words", "windows", "said"),
    [
        ({"policy": "h2o:budget=64", "pattern": "sliding:window=8"}, [None] * 9, ["5 · (8 − 1) + 1 = 36"]),
        (
            {"policy": "window:budget=4", "pattern": "sliding:window=8"},
            [None] * 9,
            ["(8 − 1) + 1 = 36", "by the pattern", "5 · (4 − 1) + 1 = 16", "by the policy"],
        ),
        ({"policy": "h2o:budget=64"}, [3] * 5, ["(3 − 1) + 1 = 11"]),
        ({"policy": "full", "pattern": "sliding:window=8"}, [3] * 5, ["= 11 by the model's own windows", "= 36"]),
        ({"policy": "h2o:budget=64"}, [None] * 9, []),
        ({"policy": "full"}, [None] * 9, ["every position before it"]),
    ],
)
def test_every_bound_that_holds_is_said(words: dict[str, str], windows: list[int | None], said: list[str]) -> None:
    formula = formula_words(parse_setup(words), 5, windows)
    assert all(part in formula for part in said) and bool(formula) == bool(said)

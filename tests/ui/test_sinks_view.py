"""Sentences of the Sinks page, on numbers made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kvviz.analysis.sink_ablation import Outcome, ablations
from kvviz.choices.setup import parse_setup
from kvviz.run.replay import replay
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
from kvviz.ui.sinks.ablation import ablation_budget, ablation_words
from kvviz.ui.sinks.view import denominator_words, headline, sentence_words, shown_layers
from tests.tiny import some_ids, tiny


def outcomes(*losses: float) -> list[Outcome]:
    return [Outcome(name, setup, loss, 0) for (name, setup, _), loss in zip(ablations(64, 4), losses, strict=True)]


def test_the_ablation_states_what_was_seen() -> None:
    said = ablation_words(outcomes(3.0, 4.0, 3.2, 3.25, 3.01, 3.5), "Model", 4)
    assert "a window of 64 changes the loss per token by +1 nats" in said and "budget, by +0.2 nats" in said
    assert "repairs 75% of the damage, so it is mostly their position" in said and "-0.5 nats with the window" in said
    assert "not only their position" in ablation_words(outcomes(3.0, 4.0, 3.2, 3.9, 3, 4), "Model", 4)
    assert "hardly matters here (+0.010 nats)" in ablation_words(outcomes(3.0, 3.01, 3, 3, 3, 3), "Model", 4)


@pytest.mark.parametrize(("layers", "chosen"), [(30, 14), (30, 0), (30, 29), (2, 1), (1, 0), (6, 3)])
def test_at_most_six_layers_are_shown_the_chosen_one_and_the_ends_among_them(layers: int, chosen: int) -> None:
    shown = shown_layers(layers, chosen)
    assert {0, layers - 1, chosen} <= set(shown) and len(shown) <= 6 and shown == sorted(shown)
    assert all(0 <= layer < layers for layer in shown)


def test_the_average_says_which_layers_sink() -> None:
    maps = np.zeros((3, 16, 16))
    maps[:2, -1, -4:] = 0.25
    maps[2, -1, 0] = 1
    said = sentence_words(maps, 64)
    assert "100% to the four latest tokens and 0% to the first one" in said and "1 of 3 layers (layers 2 to 2)" in said


def test_the_ablation_takes_the_budget_at_hand() -> None:
    assert ablation_budget(View(), 256, 4) == 64
    assert ablation_budget(View(), 40, 4) == 10  # none fits: a quarter of the text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"policy": "window:budget=8"}, "they have left the cache"),
        (
            {"policy": "full", "pattern": "sliding:window=8"},
            "the pattern hides them, though some are still in the cache",
        ),
        ({"policy": "recompute:budget=30", "pattern": "sliding:window=8"}, "the pattern hides them"),
        ({"policy": "recompute:budget=8"}, "they are not among the tokens that are re-computed"),
    ],
)
def test_why_nobody_looks_at_the_first_tokens(words: dict[str, str], reason: str) -> None:
    trace = replay(tiny("llama"), some_ids(30).tolist(), parse_setup(words), measure=True)
    run = Run(trace, [], [], 0, ())
    assert reason in headline(run, 4) and reason in denominator_words(run, 4, "A")


def test_rows_grow_by_factors_of_their_own() -> None:
    """The median and the ninth tenth of 1 / (1 − share) over heads and late queries, by hand from the maps."""
    maps = [(layer, head) for layer in range(3) for head in range(4)]
    model, ids = tiny("llama"), some_ids(30).tolist()
    trace = replay(model, ids, parse_setup({"policy": "full"}), measure=True, maps=maps)
    late = np.array([[np.nansum(trace.maps[layer, head][15:, :4], 1) for head in range(4)] for layer in range(3)])
    layer = int(late.mean((1, 2)).argmax())
    median, tenth = np.quantile(1 / (1 - late[layer]), [0.5, 0.9])
    said = denominator_words(Run(trace, [], [], 0, ()), 4, "A")
    assert f"in layer {layer} on average" in said
    assert f"{median:.3g} in the median row" in said and f"{tenth:.3g} or more" in said


def test_a_text_of_sinks_alone_has_nothing_that_grows() -> None:
    trace = replay(tiny("llama"), some_ids(1).tolist(), parse_setup({"policy": "full"}), measure=True)
    said = denominator_words(Run(trace, [], [], 0, ()), 4, "A")
    assert "no query after the prompt sees any token but the first" in said

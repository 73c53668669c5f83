"""What the Quality page says: losses after the prompt, what was forgotten, where each policy is good enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kvviz.choices.setup import parse_setup
from kvviz.figures.sweep import Kept
from kvviz.run.replay import replay
from kvviz.ui.quality import forgotten, needles, sweep, view, ways
from kvviz.ui.shell.runs import Run
from tests.tiny import some_ids, tiny

TOKENS, PROMPT, LAYER, BUDGET = 40, 20, 1, 4


def run_of(words: dict[str, str]) -> Run:
    maps = [(LAYER, head) for head in range(4)]
    trace = replay(tiny("llama"), some_ids(TOKENS).tolist(), parse_setup(words), prompt_tokens=PROMPT, maps=maps)
    labels = [f"{i} t{i}" for i in range(TOKENS)]
    return Run(trace, labels, labels, 0, ())


@pytest.fixture(scope="module")
def pair() -> tuple[Run, Run]:
    return run_of({"policy": f"window:budget={BUDGET}"}), run_of({})


def test_the_headline_has_the_difference_of_the_losses_after_the_prompt(pair: tuple[Run, Run]) -> None:
    a, b = pair
    difference = a.trace.nll[PROMPT - 1 :].mean() - b.trace.nll[PROMPT - 1 :].mean()
    more = "more" if difference > 0 else "less"
    assert f"loses {abs(difference):.3g} nats a token {more} than B (Full cache), with 10% of" in view.headline(a, b)
    assert "loses as much as B" in view.headline(b, b)
    anew = run_of({"policy": "recompute:budget=8"})
    assert "cache bytes" not in view.headline(a, anew)  # it holds none to compare with


def test_without_a_token_after_the_prompt_that_is_said(pair: tuple[Run, Run]) -> None:
    ended = Run(replace(pair[0].trace, prompt_tokens=TOKENS), [], [], 0, ())
    assert "end the prompt earlier" in view.headline(ended, ended)


def test_the_stream_has_a_value_a_token(pair: tuple[Run, Run]) -> None:
    table = list(view.stream_figure(*pair).table.rows())
    assert len(table) == TOKENS and table[0][1:] == ["", ""] and float(table[5][1]) == pair[0].trace.nll[4]


def test_the_hardest_words_and_what_was_looked_at(pair: tuple[Run, Run]) -> None:
    a, b = pair
    hard = forgotten.hardest(a, b, LAYER)
    added = {i: a.trace.nll[i - 1] - b.trace.nll[i - 1] for i in range(PROMPT, TOKENS)}
    best = sorted((i for i in added if added[i] > 0), key=lambda i: -added[i])[:8]
    assert [one.position for one in hard] == best and hard[0].added == pytest.approx(added[best[0]])
    for one in hard:
        query = one.position - 1
        by_hand = np.mean([np.nan_to_num(b.trace.maps[LAYER, head][query]) for head in range(4)], axis=0)
        by_hand[query - BUDGET + 1 :] = 0  # what the window still holds
        places = sorted(range(query), key=lambda j: -by_hand[j])[:3]
        assert [place for place, _ in one.gone] == [j for j in places if by_hand[j] > 0.005]
    assert f"{hard[0].position} t{hard[0].position} became hardest" in forgotten.words(a, hard, LAYER)


def test_nothing_is_forgotten_by_the_full_cache(pair: tuple[Run, Run]) -> None:
    assert forgotten.hardest(pair[1], pair[1], LAYER) == []
    assert forgotten.gone_weight(pair[1], pair[1], LAYER, 30).max() == 0


def test_every_point_of_a_sweep_is_a_setup_that_its_policy_takes() -> None:
    for tokens in (9, 25, 256, 2048):
        points = sweep.sweep_points(tokens)
        assert {point.policy.partition(":")[0] for point in points} == set(sweep.POLICIES)
        assert len(points) == len(sweep.POLICIES) * len(sweep.budgets_for(tokens))


def test_where_a_policy_is_good_enough_is_said() -> None:
    found = [Kept("full", "all tokens", 100, 2.0), Kept("h2o", "budget 8", 10, 2.3), Kept("h2o", "budget 16", 20, 2.05)]
    found += [Kept("window", "budget 8", 10, 3.0)]
    assert sweep.sweep_words(found) == (
        "Within 0.1 nats a token of the full cache: h2o from 16 on and window at none of these budgets."
    )


def test_needles_are_told_with_their_interval() -> None:
    counts = [(2, 10, (0.06, 0.51)), (10, 10, (0.72, 1.0))]
    found = needles.Needles(["A", "B"], np.ones((2, 5)), np.ones((2, 5)), counts, False)
    assert needles.needle_words(found).startswith("Found: A: 2 of 10 (95 % interval 6% to 51%); B: 10 of 10")


def test_the_four_ways_are_those_of_the_sources() -> None:
    four = ways.ways_of(16)
    assert [setup.policy.name() for _, _, setup in four] == ["full", "window", "recompute", "streaming"]
    losses = (2.0, 4.0, 3.0, 2.5)
    found = [ways.Way(name, cost, setup, loss, 1.0, 0) for (name, cost, setup), loss in zip(four, losses, strict=True)]
    assert ways.way_words(found, 40).startswith(
        "With 16 entries the window loses 2 nats a token to the full cache, read anew for every token 1, with sinks 0.5"
    )

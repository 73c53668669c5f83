"""H2O by hand: six steps of one head, two heavy hitters and two recent tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kvviz.eviction.by_attention import AttentionEviction
from kvviz.eviction.schedule import RunContext
from kvviz.policies import Policy, Scored, View, parse_policy
from kvviz.policies.h2o import H2O

CPU = torch.device("cpu")


def walked(policy: Policy, raw: list[list[float]], prompt_tokens: int = 1) -> list[list[int]]:
    """Kept positions after each step when row t's scores are the logarithms of ``raw`` (given as unscaled weights)."""
    scores = torch.tensor(raw, dtype=torch.float64).log()

    assert isinstance(policy, Scored)
    tokens = len(raw)
    eviction = AttentionEviction(policy, [None], RunContext(1, 1, prompt_tokens, CPU))
    eviction.begin(0, tokens)
    gone = eviction.decide(0, ScoredRows(scores)).gone_at
    return [[j for j in range(t + 1) if gone[0, j] > t] for t in range(tokens)]


class ScoredRows:
    """A block of rows of one head whose scores are given; keys and values say nothing."""

    def __init__(self, scores: Tensor) -> None:
        self.scores = scores
        self.keys = self.values = torch.zeros(1, len(scores), 4, dtype=torch.float64)
        self.key = self.keys[None]

    def open_weights(self) -> None:
        pass

    def weigh(self, part: slice, positions: Tensor, present: Tensor) -> Tensor:
        return self.scores[part][None, None].masked_fill(~present[:, None], float("-inf")).softmax(-1)

    def replace_keys(self, heads: Tensor, slots: Tensor, keys: Tensor, row: int) -> None:
        raise AssertionError("nothing is quantised here")


def test_six_steps_with_two_heavy_hitters_and_two_recent_tokens() -> None:
    """Weights of row t over the tokens it sees, in sixteenths; every row sums to 1 over what is kept.

    t=0: [16]           sums 16
    t=1: [12, 4]        sums 28, 4
    t=2: [2, 8, 6]      sums 30, 12, 6
    t=3: [1, 1, 13, 1]  sums 31, 13, 19, 1
    t=4: five tokens, two must be heavy: of 0, 1, 2 token 1 has least → kept 0 2 3 4; row [1, -, 1, 13, 1]
         sums 32, -, 20, 14, 1
    t=5: of 0, 2, 3 token 3 has least (14) → kept 0 2 4 5

    Known fault 25: heavy hitters are chosen at the end of the prompt only, not while tokens are written.
    """
    raw = [
        [16, 1, 1, 1, 1, 1],
        [12, 4, 1, 1, 1, 1],
        [2, 8, 6, 1, 1, 1],
        [1, 1, 13, 1, 1, 1],
        [1, 99, 1, 13, 1, 1],
        [4, 99, 4, 99, 4, 4],
    ]
    kept = walked(H2O(budget=4, recent=2), raw)
    assert kept == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 2, 3, 4], [0, 2, 4, 5]]


def test_no_heavy_hitters_is_the_window() -> None:
    """Known fault 23: choosing none, or the last none, empties the cache or protects everything."""
    raw = (torch.rand(12, 12) + 0.01).tolist()
    kept = walked(H2O(budget=4, recent=4), raw)
    assert kept == [[j for j in range(t + 1) if j > t - 4] for t in range(12)]


def test_uniform_attention_freezes_raw_sums_on_the_earliest_tokens() -> None:
    """With uniform attention token j received H_T − H_j, strictly falling: raw sums keep the oldest for ever.

    Known fault 28: sums of attention grow with age, so the oldest tokens stay for ever.
    """
    raw = [[1.0] * 16] * 16
    kept = walked(H2O(budget=6, recent=2), raw)
    assert kept[-1] == [0, 1, 2, 3, 14, 15]


def test_sums_divided_by_age_fall_too_but_less_steeply() -> None:
    """Of eight uniform rows token j received (1/(j+1) + … + 1/8) / (8 − j) a query: .340 to .125, not 2.72 to .125.

    Known fault 28: sums of attention grow with age, so the oldest tokens stay for ever.
    """
    received = [sum(1 / (t + 1) for t in range(j, 8)) for j in range(8)]
    view = fed_by_hand([*received, 0.0], 4)  # the ninth token has just come
    normalised = parse_policy("h2o:budget=4,recent=1,normalise=1")
    assert isinstance(normalised, H2O)
    by_hand = [0.340, 0.245, 0.203, 0.177, 0.159, 0.145, 0.134, 0.125]
    assert normalised.score(view)[0, :8].tolist() == pytest.approx(by_hand, abs=5e-4)
    assert H2O(4, 1).score(view)[0, :8].tolist() == pytest.approx(received)


def test_a_sink_is_kept_whatever_it_received() -> None:
    raw = [[0.001, *[1.0] * 15]] * 16
    assert 0 not in walked(H2O(budget=6, recent=2, normalise=True), raw)[-1]
    assert 0 in walked(H2O(budget=6, recent=2, sinks=1, normalise=True), raw)[-1]


def test_recent_left_out_is_half_the_budget() -> None:
    assert parse_policy("h2o:budget=64") == H2O(64, 32, 0, False) and H2O(1).recent == 1


@pytest.mark.parametrize("text", ["h2o:budget=8,recent=9", "h2o:budget=8,recent=6,sinks=3", "h2o:budget=8,recent=0"])
def test_protected_tokens_beyond_the_budget_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="recent="):
        parse_policy(text)


def fed_by_hand(received: list[float], limit: int) -> View:
    """The view of one head whose tokens received so much; the newest is the last."""
    count = len(received)
    scores = torch.tensor([received], dtype=torch.float64)
    return View(
        positions=torch.arange(count)[None],
        newest=count - 1,
        layer=torch.zeros(1, 1),
        head=torch.zeros(1, 1),
        layers=1,
        prompt_tokens=1,
        limit=limit,
        statistics={"received": scores, "rows": scores[:, None]},
    )


@pytest.mark.parametrize("text", ["h2o:budget=4,recent=1", "attention_window:budget=4,recent=1,observe=1"])
def test_the_sources_example_keeps_2_5_7_and_the_latest_8(text: str) -> None:
    """Claim 18, counted from 1: scores .1 .8 .2 .1 .7 .1 .6 .2, budget 4."""
    view = fed_by_hand([0.1, 0.8, 0.2, 0.1, 0.7, 0.1, 0.6, 0.2], 4)
    kept = parse_policy(text).keep(view)
    assert (kept[0].nonzero()[:, 0] + 1).tolist() == [2, 5, 7, 8]


def test_of_equal_scores_the_older_leaves() -> None:
    kept = parse_policy("h2o:budget=4,recent=1").keep(fed_by_hand([0.5, 0.5, 0.5, 0.5, 0.0], 4))
    assert kept[0].tolist() == [False, True, True, True, True]


def test_normalising_divides_by_the_queries_that_could_see_the_key() -> None:
    view = fed_by_hand([0.9, 0.5, 0.4, 0.0], 3)  # ages 3, 2, 1: 0.3, 0.25 and 0.4 a query
    assert parse_policy("h2o:budget=3,recent=1").keep(view)[0].tolist() == [True, True, False, True]
    assert parse_policy("h2o:budget=3,recent=1,normalise=1").keep(view)[0].tolist() == [True, False, True, True]

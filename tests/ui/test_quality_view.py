"""What the Quality page says: the stream and its setups, what was forgotten, needles, and where each policy fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kvviz.analysis.limits import smallest_that_works
from kvviz.analysis.tasks import TASKS
from kvviz.analysis.tasks.scoring import each_cell
from kvviz.choices.experiment import Experiment
from kvviz.choices.setup import Setup, parse_setup
from kvviz.figures.sweep import Kept
from kvviz.run import recompute
from kvviz.run.replay import replay
from kvviz.ui.quality import (
    common,
    forgotten,
    limits,
    needle_run,
    needle_words,
    needles,
    settings,
    setups,
    stream_run,
    stream_words,
    sweep,
    ways,
)
from kvviz.ui.quality.settings import QualitySettings
from kvviz.ui.shell.disk_results import Stamp, packed, unpacked
from kvviz.ui.shell.jobs import Result
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
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


def view_with(**own: object) -> View:
    return replace(View(), own=(QualitySettings(**own),))  # type: ignore[arg-type]


def read(run: Run, letter: str, end: int | None = None) -> stream_run.Read:
    """What the stream holds of a run, or of its beginning."""
    trace = run.trace
    held = trace.cache_bytes if end is None else None
    found = stream_run.Stream(trace.nll[:end], TOKENS, PROMPT, tuple(run.labels), held)
    return setups.Named(letter, trace.setup), found  # type: ignore[arg-type]


def test_the_headline_has_the_difference_of_the_losses_of_the_second_half(pair: tuple[Run, Run]) -> None:
    a, b = read(pair[0], "a"), read(pair[1], "b")
    difference = pair[0].trace.nll[PROMPT - 1 :].mean() - pair[1].trace.nll[PROMPT - 1 :].mean()
    more = "more" if difference > 0 else "less"
    said = stream_words.headline([a, b])
    assert said.startswith("In the second half of 40 tokens A (Sliding window, budget 4) loses")
    assert f"{abs(difference):.3g} nats a token {more} than B (Full cache), with 10% of its cache bytes" in said
    assert "loses as much as B" in stream_words.headline([(replace(b[0], letter="a"), b[1]), b])
    added = [read(pair[0], "c"), (setups.Named("d", Setup()), b[1])]
    best = "C" if difference < 0 else "D"
    said = stream_words.headline([a, b, *added])
    assert f"; {best} (" in said and ", the best of the others," in said


def test_what_is_read_so_far_is_compared_and_named(pair: tuple[Run, Run]) -> None:
    a, b = read(pair[0], "a"), read(pair[1], "b", 10)
    assert stream_words.headline([a]) == "A: Sliding window, budget 4 has read 39 of 40 tokens so far."
    difference = pair[0].trace.nll[:10].mean() - pair[1].trace.nll[:10].mean()
    said = stream_words.headline([a, b])
    assert said.startswith("In the first 10 of 40 tokens A") and f"{abs(difference):.3g} nats" in said
    assert "bytes" not in said
    assert stream_words.unfinished([a, b]) == "Not read to the end: B up to token 10 of 40."
    assert not stream_words.unfinished([a])


def test_the_stream_s_figure_grows_on_an_axis_of_full_length(pair: tuple[Run, Run]) -> None:
    drawing = stream_words.figure([read(pair[0], "a"), read(pair[1], "b", 10)])
    table = list(drawing.table.rows())
    assert len(table) == TOKENS and table[0][1:] == ["", ""] and float(table[5][1]) == pair[0].trace.nll[4]
    assert float(table[10][2]) == pair[1].trace.nll[9] and table[11][2] == ""
    assert list(drawing.figure.layout.xaxis.range) == [-0.5, TOKENS - 0.5]
    every = stream_words.figure([read(pair[0], "a")], is_every=True).figure
    assert len(every.data) == 2 and every.data[1].y[5] == pytest.approx(pair[0].trace.nll[4], rel=1e-6)


def test_a_and_b_come_first_and_nothing_twice() -> None:
    view = view_with(added="full; h2o:budget=64; tova:budget=8; h2o:budget=64")
    assert [(one.letter, one.setup.policy.name()) for one in setups.compared(view)] == [
        ("a", "streaming"),
        ("b", "full"),
        ("c", "h2o"),
        ("d", "tova"),
    ]


def test_what_the_menu_offers_is_understood_and_is_not_there_already() -> None:
    for budget in (4, 64):
        view = replace(view_with(), versus=parse_setup({"policy": f"h2o:budget={budget}"}))
        offered = setups.offered(view)
        assert len(offered) >= 5 and settings.parse_added("; ".join(offered[:6])) == "; ".join(offered[:6])
        assert setups.spelled(view.versus) not in offered


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("windw:budget=4", "did you mean 'window'"),
        ("h2o:budget=64 slott", "did you mean 'slot'"),
        ("h2o:budget=64 slot original", "names two choices of positions"),
        (";".join(f"window:budget={size}" for size in range(1, 8)), "7 setups beside A and B are too many"),
    ],
)
def test_a_setup_that_is_not_understood_is_refused_in_a_sentence(words: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        settings.parse_added(words)


def test_a_setup_is_read_as_it_is_spelled() -> None:
    line = "streaming:budget=64,sinks=4 slot int4:group=32,residual=32"
    assert settings.parse_added(" streaming : budget=64, sinks=4 · slot · int4 ;") == line


def test_the_stream_s_length_has_a_limit_that_the_server_s_owner_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVVIZ_STREAM_TOKENS", raising=False)
    with pytest.raises(ValueError, match="at most 2,048 tokens of a stream, not 4,096; whoever runs it can allow up"):
        settings.parse_stream_tokens("4096")
    for word, limit in (("4096", 4096), ("99999", 8192), ("8", 16), ("many", 2048), ("-1", 2048)):
        monkeypatch.setenv("KVVIZ_STREAM_TOKENS", word)
        assert settings.stream_limit() == limit
    monkeypatch.setenv("KVVIZ_STREAM_TOKENS", "4096")
    assert settings.parse_stream_tokens("4096") == 4096


def test_the_hardest_words_come_first(pair: tuple[Run, Run]) -> None:
    a, b = pair
    added = {i: a.trace.nll[i - 1] - b.trace.nll[i - 1] for i in range(PROMPT, TOKENS)}
    best = sorted((i for i in added if added[i] > 0), key=lambda i: -added[i])[:8]
    assert forgotten.hardest(a, b) == best and forgotten.hardest(b, b) == []
    cost = a.trace.nll[best[0] - 1]
    assert f"{cost:.3g} nats under A (probability {np.exp(-cost):.3g})" in forgotten.loss_words(a, b, best[0])


def test_what_was_looked_at_and_is_gone(pair: tuple[Run, Run]) -> None:
    a, b = pair
    query, weights = 30, np.zeros((a.trace.layers, 4, 31), dtype=np.float32)
    weights[LAYER] = [b.trace.maps[LAYER, head][query, : query + 1] for head in range(4)]
    gone = forgotten.gone_weight(a, weights, query)
    by_hand = weights[LAYER].mean(0)
    by_hand[query - BUDGET + 1 :] = 0  # what the window still holds
    np.testing.assert_allclose(gone[LAYER], by_hand, rtol=1e-6)
    said, most = forgotten.gone_words(a, gone), int(by_hand.argmax())
    assert f"most in layer {LAYER} ({by_hand.sum():.0%}): {most} t{most} ({by_hand[most]:.0%})" in said
    assert forgotten.gone_weight(b, weights, query).max() == 0  # the full cache forgets nothing
    table = list(forgotten.figure(a, gone).table.rows())
    assert len(table) == a.trace.layers


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


def test_the_smallest_budget_is_sought_from_above_until_it_fails() -> None:
    asked: list[int] = []

    def works(budget: int) -> bool:
        asked.append(budget)
        return budget != 32

    assert smallest_that_works((16, 32, 64, 128), works) == 64 and asked == [128, 64, 32]
    assert smallest_that_works((16, 32), lambda budget: False) is None
    assert smallest_that_works((16, 32), lambda budget: True) == 16


def test_where_each_policy_fails_first_is_said() -> None:
    smallest = {(policy, task): 16 for policy in sweep.POLICIES for task in ("loss", "passkey")}
    smallest |= {("window", "passkey"): None, ("h2o", "loss"): 32}
    said = limits.limit_words(limits.Limits(smallest, ("loss", "passkey"), ("multikey",), 60.0))
    assert said.startswith("window fails passkey at 128 entries already; streaming does everything down to 16 entries")
    assert "h2o does everything down to 32 entries, then loss fails first" in said
    rule = limits.rule_words(limits.Limits(smallest, ("loss", "passkey"), ("multikey",), 60.0))
    assert "Void for this model, because the full cache misses some: multikey." in rule


def asked_of(words: dict[str, str]) -> needle_run.Needles:
    """Random tokens, repeated, asked of a tiny model that knows no answer."""
    options = {"tokens": 90, "depths": needle_run.DEPTHS, "seeds": 2}
    filler = some_ids(60).tolist()
    cells = each_cell(tiny("llama"), list, filler, TASKS["induction"], parse_setup(words), **options)  # type: ignore
    return needle_run.gathered([*cells], True, 2)


def test_a_miss_is_forgotten_or_not_found_with_its_number() -> None:
    """A policy that surely drops the needle, and one that surely keeps it."""
    kept, dropped = asked_of({}), asked_of({"policy": "window:budget=4"})
    assert kept.found.shape == (5, 2) and not kept.found.any() and kept.is_void
    assert kept.held.min() == 1 and dropped.held.max() == 0 and kept.pairs == 6
    rows = [needle_words.Row("A", Setup(), 90, kept), needle_words.Row("B", Setup(), 90, dropped)]
    drawing = needle_words.grid_figure(rows, "Needles")
    words = drawing.figure.data[0].text.tolist()
    assert words[0][0] == "0 of 2<br>not found<br>held 6/6" and words[1][0] == "0 of 2<br>forgotten<br>held 0/6"
    table = list(drawing.table.rows())
    assert len(table) == 20 and {row[4] for row in table} == {"not found", "forgotten"}
    assert "A, 90: 0 of 10 (0% to 28%); B, 90: 0 of 10" in needle_words.needle_words(rows)
    assert "it finds 0 of 10 itself" in needle_words.void_words(rows[0])


def test_the_full_cache_is_asked_too_and_nobody_twice() -> None:
    view = view_with(added="h2o:budget=64")
    assert [letter for letter, _ in needles.with_full(setups.compared(view))] == ["A", "B", "C"]
    without = replace(view, versus=view.experiment.setup)
    assert [letter for letter, _ in needles.with_full(setups.compared(without))] == ["A", "C", "full"]


def test_the_four_ways_are_those_of_the_sources() -> None:
    four = ways.ways_of(16)
    assert [setup.policy.name() for *_, setup in four] == ["full", "window", "recompute", "streaming"]
    mask = np.ones((2, 2), dtype=bool)
    losses = (2.0, 4.0, 3.0, 2.5)
    found = [ways.Way(*one, mask, loss, 1.0, 0, 40) for one, loss in zip(four, losses, strict=True)]
    assert ways.way_words(found).startswith(
        "With 16 entries the window loses 2 nats a token to the full cache, read anew for every token 1, with sinks 0.5"
    )
    assert ways.way_table(found).count("\n") == 5


def test_what_was_computed_for_a_sample_is_compared_on_that_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long text re-computation has a few tokens only: others are harder or easier, and took no time."""
    monkeypatch.setattr(recompute, "AFFORDABLE_TOKENS", 1)
    ids, setup = some_ids(120).tolist(), parse_setup({"policy": "recompute:budget=4"})
    a, b = replay(tiny("llama"), ids, setup), replay(tiny("llama"), ids, Setup())
    there = np.isfinite(a.nll[59:])
    assert ways.left(a) == 100 and ways.left(b) == 0 and 5 <= there.sum() <= 10
    losses = common.means_after([a.nll, b.nll], 59)
    assert losses == pytest.approx([a.nll[59:][there].mean(), b.nll[59:][there].mean()])
    streams = [stream_run.Stream(one.nll, 120, 60, tuple(map(str, ids)), one.cache_bytes) for one in (a, b)]
    assert stream_words.compared_losses(streams) == ("In the second half of 120 tokens", losses)
    # one pass for the first four tokens and one for each of 116 others, of which 100 were left out
    assert ways.token_ms(a) == pytest.approx(1000 * a.seconds * 117 / 17 / 120)
    assert ways.token_ms(b) == 1000 * b.seconds / 120
    way = ways.Way(*ways.ways_of(4)[2], np.ones((2, 2), dtype=bool), 1.0, 1.0, 0, 120, ways.left(a))
    assert "Of 120 tokens 100 were not read anew" in ways.sample_words([way])
    assert ways.sample_words([replace(way, left=0)]) == ""


def test_their_masks_are_those_of_the_policies() -> None:
    """Claim 27: a triangle, a band, the triangle of the last window, a band beside the sinks."""
    masks = {}
    for key, *_, setup in ways.ways_of(4, 2):
        masks[key] = ways.seen_in(replay(tiny("llama"), some_ids(8).tolist(), setup))
    causal, distance = np.tri(8, dtype=bool), np.arange(8)[:, None] - np.arange(8)
    assert (masks["dense"] == causal).all()
    assert (masks["window"] == (causal & (distance < 4))).all()
    in_last = np.arange(8) >= 4
    assert (masks["anew"] == (causal & in_last & in_last[:, None])).all()
    sinks = np.arange(8) < 2
    assert (masks["sinks"] == (causal & (sinks | (distance < 2)))).all()


def test_the_budget_of_the_four_ways_is_that_of_a_where_it_fits() -> None:
    view = View(Experiment(parse_setup({"policy": "window:budget=16"})), Setup())
    assert ways.budget_for(view, 40) == 16 and ways.budget_for(view, 12) == 12
    assert ways.budget_for(replace(view, experiment=Experiment(Setup())), 400) == 64


def test_a_stream_asks_nothing_and_is_drawn_as_losses_by_depth() -> None:
    options = {"tokens": 140, "depths": needle_run.DEPTHS, "seeds": 1}
    cells = each_cell(tiny("llama"), list, some_ids(300).tolist(), TASKS["stream"], Setup(), **options)  # type: ignore
    found = needle_run.gathered([*cells], False, 1)
    assert not found.is_scored and not found.is_void and np.isnan(found.held).all()
    rows = [needle_words.Row(letter, Setup(), 140, found) for letter in ("A", "full")]
    drawing = needle_words.loss_figure(rows, "Loss")
    assert [trace.name for trace in drawing.figure.data] == ["A, 140", "full, 140"]
    np.testing.assert_array_equal(drawing.figure.data[0].y, found.loss[:, 0])


def test_what_is_computed_is_read_back_from_the_disk(pair: tuple[Run, Run]) -> None:
    stamp = Stamp(0.0, False, "float32 on cpu", "here")
    trace, mask = pair[0].trace, np.eye(2, dtype=bool)
    found = limits.Limits({("window", "loss"): None}, ("loss",), (), 1.0)
    way = ways.Way("dense", "dense", "O", trace.setup, mask, 1.0, 1.0, 0, 40)
    values = [read(pair[0], "a")[1], asked_of({}), found, [way], [Kept("h2o", "budget 8", 1, 2.0)], trace.nll]
    for value in values:
        again, _ = unpacked(packed(Result(value), stamp, "name"), "name")
        assert type(again.value) is type(value)
    assert (unpacked(packed(Result(values[0]), stamp, "name"), "name")[0].value.losses == trace.nll).all()

"""``needle`` and ``sweep``: what they answer on a tiny model, and what they refuse before a model is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvviz.analysis import estimate
from kvviz.analysis.sweep import points_of, swept
from kvviz.analysis.tasks import scoring
from kvviz.choices.setup import Setup
from kvviz.cli import inputs, sweep
from kvviz.cli.main import main
from kvviz.run import recompute
from kvviz.run.replay import replay
from tests.cli.test_command_line import Bytes
from tests.tiny import some_ids, tiny

NEEDLE = ("needle", "--task", "passkey", "--tokens", "250")  # of the 256 positions of the tiny model


@pytest.fixture
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace(model=tiny("llama"), tokenizer=Bytes())
    monkeypatch.setattr(inputs, "load_model", lambda arguments: loaded)


@pytest.fixture
def text(tmp_path: Path) -> str:
    (tmp_path / "text").write_text("It was a bright cold day in April, and the clocks were striking thirteen.")
    return str(tmp_path / "text")


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words]) == 2
    written = capsys.readouterr()
    assert written.err.count("\n") == 1 and not written.out
    return written.err


@pytest.mark.usefixtures("tiny_model")
def test_a_grid_of_depths_and_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, *NEEDLE, "--policy", "window:budget=32", "--depths", "0/100", "--seeds", "2")
    assert list(found) == ["task", "tokens", "cells", "found", "of", "interval", "void"]
    assert [(cell["depth"], cell["seed"]) for cell in found["cells"]] == [(0, 0), (100, 0), (0, 1), (100, 1)]
    assert found["found"] == 0 and found["of"] == 4 and found["interval"] == pytest.approx([0, 0.4899], abs=1e-4)
    assert found["void"] is True  # a random model finds nothing with the full cache either
    assert {cell["held"] for cell in found["cells"] if cell["depth"] == 0} == {0.0}


@pytest.mark.usefixtures("tiny_model")
def test_a_stream_has_losses_alone(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "needle", "--task", "stream", "--tokens", "200")
    assert found["found"] is found["of"] is found["interval"] is None and found["void"] is False
    assert len({cell["answer_loss"] for cell in found["cells"]}) == 5


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--task", "pasky"], "There is no task 'pasky'; did you mean 'passkey'?"),
        (["--tokens", "10"], "10 tokens are too few for passkey"),
        (["--depths", "0/101"], "The depth 101 must be from 0 (the beginning) to 100 (the end), in percent."),
        (["--depths", "50/0/50"], "The depth 50 is given twice; give each depth once"),
        (["--depths", "0/half"], "--depths 'half' is not a whole number"),
        (["--seeds", "0"], "--seeds 0 must be at least 1."),
        (["--policy", "windo"], "There is no policy 'windo'; did you mean 'window'?"),
    ],
)
def test_nonsense_is_refused_before_a_model_is_loaded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.setattr(inputs, "load_model", lambda arguments: pytest.fail("the model was loaded"))
    options = dict(zip(NEEDLE[1::2], NEEDLE[2::2], strict=True)) | {words[0]: words[1]}
    assert sentence in refused(capsys, "needle", *[word for pair in options.items() for word in pair])


@pytest.mark.usefixtures("tiny_model")
def test_a_sweep_goes_through_policies_then_budgets(capsys: pytest.CaptureFixture[str], text: str) -> None:
    rows = answer(
        capsys,
        "sweep",
        "--policies",
        "streaming:sinks=2;full; tova",
        "--budgets",
        "8/16",
        "--text",
        text,
        "--tokens",
        "60",
    )
    places = [("streaming:sinks=2", 8), ("streaming:sinks=2", 16), ("full", None), ("tova", 8), ("tova", 16)]
    assert [(row["policy"], row["budget"]) for row in rows] == places
    assert [list(row) for row in rows] == [["setup", "policy", "budget", "nll", "cache_bytes", "seconds"]] * 5
    assert rows[0]["setup"] == "streaming:budget=8,sinks=2" and rows[0]["cache_bytes"] == 3 * 2 * 8 * 16 * 8
    ids = Bytes()(Path(text).read_text())["input_ids"][:60]
    assert rows[2]["nll"] == pytest.approx(replay(tiny("llama"), ids, Setup()).nll.mean())


@pytest.mark.parametrize(
    ("policies", "budgets", "sentence"),
    [
        (["windo"], [8], "There is no policy 'windo'; did you mean 'window'?"),
        (["window:budget=8"], [8], "has a budget of its own; leave it out"),
        (["streaming:sinks=9"], [8], "sinks=9"),
        (["streaming:sink=2"], [8], "sink"),
        (["window"], [0], "budget=0"),
        ([""], [8], "There is no policy ''"),
        (["window"], [8, 4, 8], "The budget 8 is given twice; give each budget once."),
    ],
)
def test_a_sweep_refuses_what_no_policy_takes(policies: list[str], budgets: list[int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.replace("?", r"\?")):
        points_of(policies, budgets, Setup())


@pytest.mark.real
def test_smollm2_finds_the_key_until_it_is_evicted(capsys: pytest.CaptureFixture[str]) -> None:
    """At 256 tokens the full cache finds both keys; a window of 64 only the one at the end, which it still holds."""
    words = ("needle", "--task", "passkey", "--tokens", "256", "--depths", "0/100")
    found = answer(capsys, *words, "--policy", "window:budget=64")
    assert found["void"] is False
    assert [(cell["found"], cell["held"]) for cell in found["cells"]] == [(False, 0.0), (True, 1.0)]


@pytest.mark.usefixtures("tiny_model")
def test_what_would_take_too_long_is_refused_with_its_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(estimate, "seconds_per_token", lambda model: 0.01)
    words = (*NEEDLE, "--policy", "window:budget=32", "--depths", "0/100", "--seeds", "1000")
    said = refused(capsys, *words)  # 2,000 cells of 250 tokens, each with the full cache too, at 1.3 plain tokens
    assert (
        "This would take about 3.6 h here (1,300,000 tokens to read, 10 ms each), more than the limit of 60 min" in said
    )
    assert "set KVVIZ_LIMIT_SECONDS to more seconds" in said
    monkeypatch.setenv("KVVIZ_LIMIT_SECONDS", "much")
    assert "KVVIZ_LIMIT_SECONDS='much' must be a whole number of seconds" in refused(capsys, *words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--prompt-tokens", "61"], "--prompt-tokens 61 must be from 1 to 60"),
        (["--score-from", "60"], "--score-from 60 must be from 0 to 59"),
        (["--tokens", "1"], "One token has no loss"),
    ],
)
def test_a_sweep_refuses_options_before_a_model_is_loaded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, words: list[str], sentence: str
) -> None:
    monkeypatch.setattr(inputs, "load_model", lambda arguments: pytest.fail("the model was loaded"))
    options = {"--policies": "window", "--budgets": "8", "--text": text, "--tokens": "60"} | {words[0]: words[1]}
    assert sentence in refused(capsys, "sweep", *[word for pair in options.items() for word in pair])


@pytest.mark.usefixtures("tiny_model")
def test_what_cannot_end_does_not_begin(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the 256 positions of the model a bounded setup with slots may run; the full cache after it may not."""
    monkeypatch.setattr(sweep, "swept", lambda *words, **options: pytest.fail("a run began"))
    (tmp_path / "long").write_text("It was a bright cold day in April. " * 10)
    words = ("sweep", "--policies", "streaming;full", "--budgets", "8", "--text", str(tmp_path / "long"))
    assert "full · slot needs 300 positions" in refused(capsys, *words, "--tokens", "300", "--positions", "slot")


@pytest.mark.usefixtures("tiny_model")
def test_needles_beyond_the_positions_of_the_full_cache(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream asks for nothing, so it needs no full cache beside it; where one is needed, no run begins."""
    slot = ("--policy", "window:budget=32", "--positions", "slot")
    asked = answer(capsys, "needle", "--task", "stream", "--tokens", "300", "--depths", "0", *slot)
    assert asked["void"] is False and len(asked["cells"]) == 1
    monkeypatch.setattr(scoring, "replay", lambda *words, **options: pytest.fail("a run began"))
    said = refused(capsys, "needle", "--task", "passkey", "--tokens", "400", *slot)
    assert "The full cache is asked too, since a task that it fails is void: full needs 400 positions" in said


@pytest.mark.usefixtures("tiny_model")
def test_writing_that_would_take_too_long_is_refused_before_it_starts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "seconds_per_token", lambda model: 0.01)
    slot = ("--policy", "window:budget=32", "--positions", "slot")
    said = refused(capsys, "generate", "--prompt", "Once", "--max-new-tokens", "1000000", *slot)
    assert "This would take about 13.9 h here (5,000,006 tokens to read, 10 ms each)" in said
    said = refused(capsys, "report", "--tokens", "64", "--max-new-tokens", "8", "--repeats", "1000000")
    assert "This would take about" in said and "more than the limit of 60 min" in said
    said = refused(capsys, "report", "--tokens", "300", "--max-new-tokens", "8", *slot)
    assert "A report compares with other setups: full needs 307 positions" in said


def test_a_sweep_names_a_point_of_which_no_scored_token_was_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not NaN, which is no JSON; and a mean over a sample says so."""
    monkeypatch.setattr(recompute, "AFFORDABLE_TOKENS", 1)
    point, told = points_of(["recompute"], [4], Setup())[0], list[str]()
    ids = some_ids(100).tolist()
    row = swept(tiny("llama"), ids, point, tell=told.append)
    assert row.nll > 0 and "16 of the 96 later positions were computed" in told[0]
    with pytest.raises(ValueError, match="None of the scored tokens was computed under recompute:budget=4"):
        swept(tiny("llama"), ids, point, score_from=98)

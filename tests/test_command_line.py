"""The command line on the real model, as a script would call it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvviz.__main__ import main
from kvviz.policies import POLICIES
from kvviz.texts import PRESETS

TOKENS = 48


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("text") / "story.txt"
    path.write_text(PRESETS["story"].text(), encoding="utf-8")
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_policies_lists_all_with_knobs_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys, "policies")
    assert [row["name"] for row in rows] == list(POLICIES)
    for row in rows:
        assert row["title"] and row["source"]
        for knob in row["knobs"]:
            assert set(knob) - {"choices"} == {"name", "default", "low", "high", "label"}


@pytest.mark.real
def test_nll_reports_one_loss_less_than_tokens(capsys: pytest.CaptureFixture[str], text: str) -> None:
    options = ("nll", "--policy", "window:budget=16", "--text", text, "--tokens", str(TOKENS))
    row = answer(capsys, *options, "--score-from", "20")
    assert (row["tokens"], row["prompt_tokens"], row["score_from"]) == (TOKENS, TOKENS // 2, 20)
    assert len(row["nll_per_token"]) == TOKENS - 1
    assert row["nll"] == pytest.approx(sum(row["nll_per_token"][19:]) / (TOKENS - 20))
    assert row["ppl"] == pytest.approx(math.exp(row["nll"]))
    assert row["cache_bytes"] == 2 * 30 * 3 * 16 * 64 * 4
    stepwise = answer(capsys, *options, "--stepwise")
    assert stepwise["nll_per_token"] == pytest.approx(row["nll_per_token"], abs=2e-4)
    assert stepwise["cache_bytes"] == row["cache_bytes"]


@pytest.mark.real
def test_keep_lists_positions_after_each_step(capsys: pytest.CaptureFixture[str], text: str) -> None:
    row = answer(capsys, "keep", "--policy", "streaming:budget=8,sinks=4", "--text", text, "--tokens", "12")
    assert len(row["kept"]) == 12
    assert row["kept"][3] == [0, 1, 2, 3] and row["kept"][11] == [0, 1, 2, 3, 8, 9, 10, 11]


@pytest.mark.real
def test_attention_has_a_number_for_every_layer_and_query_head(capsys: pytest.CaptureFixture[str], text: str) -> None:
    row = answer(capsys, "attention", "--policy", "full", "--text", text, "--tokens", str(TOKENS))
    for name in ("sink_mass", "entropy", "mean_distance"):
        assert len(row[name]) == 30 and {len(heads) for heads in row[name]} == {9}
    assert all(0 <= mass <= 1.00001 for heads in row["sink_mass"] for mass in heads)
    narrow = answer(capsys, "attention", "--policy", "full", "--text", text, "--tokens", str(TOKENS), "--sinks", "1")
    assert narrow["sink_mass"][12][0] <= row["sink_mass"][12][0]


@pytest.mark.real
def test_generate_continues_a_prompt(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    row = answer(
        capsys, "generate", "--prompt", "The capital of France is", "--max-new-tokens", "6", "--policy", "full"
    )
    assert row["text"].startswith(" Paris") and len(row["token_ids"]) == 6
    assert len(row["positions_held"]) == 30 and row["positions_held"][0] == [list(range(10))] * 3
    assert row["cache_bytes"] == 2 * 30 * 3 * 10 * 64 * 4
    ids = tmp_path / "ids.json"
    ids.write_text("[504, 3575, 282]", encoding="utf-8")
    again = answer(capsys, "generate", "--token-ids", str(ids), "--max-new-tokens", "2", "--policy", "window:budget=2")
    assert again["positions_held"][29] == [[2, 3]] * 3


@pytest.mark.real
def test_a_budget_above_the_text_is_accepted_with_a_note(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main(["nll", "--policy", "window:budget=100000", "--text", text, "--tokens", "16", "--json"]) == 0
    captured = capsys.readouterr()
    assert "exactly the full cache" in captured.err and json.loads(captured.out)["tokens"] == 16


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nll", "--policy", "windw"], "did you mean 'window'"),
        (["nll", "--policy", "window:budget=0"], "budget=0"),
        (["nll", "--positions", "slots"], "did you mean 'slot'"),
        (["nll", "--tokens", "0"], "--tokens 0 must be at least 1"),
        (["nll", "--tokens", "many"], "invalid int value: 'many'"),
        (["nll", "--polic", "x", "--nonsense"], "--nonsense"),
        (["keep", "--model", "gpt-5"], "gpt-5"),
        (["nll", "--dtype", "float8"], "float8"),
        (["nll", "--device", "toaster"], "toaster"),
    ],
)
def test_bad_input_ends_with_one_sentence(
    capsys: pytest.CaptureFixture[str], text: str, arguments: list[str], sentence: str
) -> None:
    assert main([*arguments, "--text", text]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and sentence in captured.err
    assert captured.err.count("\n") == 1 and "Traceback" not in captured.err


@pytest.mark.real
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nll", "--tokens", "1"], "nothing to predict"),
        (["nll", "--tokens", "8", "--score-from", "8"], "--score-from 8 must be from 0 to 7"),
        (["nll", "--tokens", "8", "--prompt-tokens", "9"], "The prompt cannot end after 9 of 8 tokens"),
        (["nll", "--tokens", "8", "--block", "0"], "block=0"),
        (["keep", "--tokens", "8", "--layer", "30"], "no layer 30, KV head 0: this model has layers 0–29"),
        (["attention", "--tokens", "8", "--prompt-tokens", "8"], "No query follows the prompt"),
        (["attention", "--tokens", "8", "--sinks", "0"], "--sinks 0"),
    ],
)
def test_bad_numbers_end_with_one_sentence(
    capsys: pytest.CaptureFixture[str], text: str, arguments: list[str], sentence: str
) -> None:
    test_bad_input_ends_with_one_sentence(capsys, text, arguments, sentence)


@pytest.mark.parametrize(
    ("content", "sentence"), [(b"", "empty"), (b"caf\xe9", "not UTF-8 text (byte 3)"), (None, "cannot be read")]
)
def test_a_bad_file_ends_with_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / "text"
    if content is not None:
        path.write_bytes(content)
    assert main(["nll", "--text", str(path)]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "{}", "[1, 2.5]", "[true]", "words"])
def test_bad_token_ids_end_with_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str) -> None:
    path = tmp_path / "ids"
    path.write_text(content, encoding="utf-8")
    assert main(["generate", "--token-ids", str(path), "--max-new-tokens", "2"]) == 2
    assert "one JSON list of whole token numbers" in capsys.readouterr().err


def test_it_runs_as_a_module_and_prints_only_json() -> None:
    command = [sys.executable, "-m", "kvviz", "policies", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) and done.stderr == ""

"""``draft``: its fields on a tiny model, and what it refuses in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvviz.cli import inputs
from tests.cli.test_command_line import Bytes
from tests.cli.test_needle_and_sweep import answer, refused
from tests.tiny import tiny

PROMPT = ("draft", "--prompt", "abcabcabcabc", "--max-new-tokens")


@pytest.fixture(autouse=True)
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace(model=tiny("llama"), tokenizer=Bytes())
    monkeypatch.setattr(inputs, "load_model", lambda arguments: loaded)


@pytest.mark.parametrize("drafter", [("--drafter", "lookup"), ("--drafter", "layers", "--layers", "2")])
def test_every_field(capsys: pytest.CaptureFixture[str], drafter: tuple[str, ...]) -> None:
    found = answer(capsys, *PROMPT, "10", *drafter)
    fields = ["token_ids", "greedy_token_ids", "equal", "steps", "accepted", "largest_gap", "cache_gap", "text"]
    assert list(found) == fields
    assert found["equal"] is True and found["token_ids"] == found["greedy_token_ids"]
    assert len(found["accepted"]) == found["steps"] and found["largest_gap"] < 1e-9 and found["cache_gap"] < 1e-9


def test_token_numbers_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "ids").write_text(json.dumps([1, 2, 3, 1, 2, 3, 1, 2]))
    found = answer(capsys, "draft", "--token-ids", str(tmp_path / "ids"), "--max-new-tokens", "5")
    assert len(found["token_ids"]) <= 5 and found["equal"] is True


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("4", "--width", "0"), "--width 0 must be at least 1"),
        (("4", "--width", "20", "--depth", "4"), "choose a width of at most 16 or a depth of at most 3"),
        (("4", "--drafter", "oracle"), "There is no drafter 'oracle'"),
        (("4", "--drafter", "layers", "--layers", "9"), "The first 9 layers cannot draft: choose from 1 to 2"),
        (("0",), "--max-new-tokens 0 must be at least 1"),
        (("900",), "was trained on 256"),
    ],
)
def test_nonsense_is_refused(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused(capsys, *PROMPT, *words)

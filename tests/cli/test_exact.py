"""``exact``: its fields on a tiny model, and what it refuses in one sentence."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from kvviz.cli import inputs
from tests.cli.test_command_line import Bytes
from tests.cli.test_needle_and_sweep import answer, refused
from tests.tiny import tiny


@pytest.fixture(autouse=True)
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace(model=tiny("llama"), tokenizer=Bytes(), dtype=torch.float64)
    monkeypatch.setattr(inputs, "load_model", lambda arguments: loaded)


@pytest.fixture
def text(tmp_path: Path) -> str:
    (tmp_path / "text").write_text("It was a bright cold day in April, and the clocks were striking thirteen.")
    return str(tmp_path / "text")


def test_every_field(capsys: pytest.CaptureFixture[str], text: str) -> None:
    found = answer(capsys, "exact", "--text", text, "--tokens", "40", "--window", "4")
    assert list(found) == ["dtype", "cached_gap", "argmax_agree", "conditions", "mask", "removal"]
    # the stock model's eager attention takes its softmax in float32 whatever the format
    assert found["dtype"] == "float64" and found["cached_gap"] < 1e-5 and found["argmax_agree"] == 1
    assert [one["name"] for one in found["conditions"]] == ["prefix", "weights", "positions", "rule", "dtype"]
    assert all(list(one) == ["name", "first_token", "gap"] and one["gap"] > 1e-5 for one in found["conditions"])
    for one in found["conditions"]:
        assert one["first_token"] is None or 20 < one["first_token"] <= 40
    assert found["mask"]["right_gap"] < 1e-5 < found["mask"]["corner_gap"]
    assert list(found["removal"]) == ["full", "removed", "zeroed"] and len(set(found["removal"].values())) == 3


def test_nothing_breaks_where_nothing_is_changed(capsys: pytest.CaptureFixture[str], text: str) -> None:
    same = ("--adapter", "0", "--shift", "0", "--window", "99")
    found = {one["name"]: one for one in answer(capsys, "exact", "--text", text, "--tokens", "40", *same)["conditions"]}
    for name in ("weights", "positions", "rule"):
        assert found[name]["first_token"] is None and found[name]["gap"] < 1e-5


def test_the_shortest_text(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert answer(capsys, "exact", "--text", text, "--tokens", "3")["argmax_agree"] == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--tokens", "2"), "give at least 3 tokens"),
        (("--tokens", "0"), "--tokens 0 must be at least 1"),
        (("--tokens", "20", "--edit", "12"), "no token 12 in the prefix to replace: it has the positions 0–9"),
        (("--tokens", "20", "--remove", "10"), "no entry 10 to remove: the prefix has the positions 0–9"),
        (("--adapter", "1.5"), "The strength 1.5 of the adapter must be from 0 (no change) to 1"),
        (("--adapter", "nan"), "The strength nan of the adapter must be"),
        (("--shift", "2000"), "must be from 0 (none) to 1024"),
        (("--window", "0"), "--window 0 must be at least 1"),
        (("--tokens", "20", "--prompt-tokens", "19"), "choose a number from 1 to 18"),
        (("--tokens", "60", "--shift", "400"), "more than the 256 that this llama model was trained on"),
    ],
)
def test_nonsense_is_refused(
    capsys: pytest.CaptureFixture[str], text: str, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in refused(capsys, "exact", "--text", text, *words)

"""``share``: its fields on a tiny model, how prompts are written, and what it refuses in one sentence."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from kvviz.cli import inputs
from kvviz.cli.share import prompts_of
from tests.cli.test_command_line import Bytes
from tests.cli.test_needle_and_sweep import answer, refused
from tests.tiny import tiny


@pytest.fixture(autouse=True)
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace(model=tiny("llama"), tokenizer=Bytes())
    monkeypatch.setattr(inputs, "load_model", lambda arguments: loaded)


def written(folder: Path, content: str) -> str:
    (folder / "prompts").write_text(content)
    return str(folder / "prompts")


def test_every_field(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = written(tmp_path, "abcdefgh1\nabcdefgh2\nabcdefgh\n")
    found = answer(capsys, "share", "--prompts", file, "--block", "4")
    assert list(found) == ["prompts", "blocks", "bytes_alone", "bytes_shared", "largest_gap"]
    assert found["prompts"] == [
        {"tokens": 9, "hit_tokens": 0, "first_difference": None},
        {"tokens": 9, "hit_tokens": 8, "first_difference": 8},
        {"tokens": 8, "hit_tokens": 4, "first_difference": None},
    ]
    each = 3 * 2 * 2 * 8 * 8
    assert found["bytes_alone"] == 26 * each and found["bytes_shared"] == (9 + 1 + 4) * each and found["blocks"] == 5
    assert found["largest_gap"] < 1e-9


def test_one_token_a_block_is_a_radix_tree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = answer(capsys, "share", "--prompts", written(tmp_path, "abcd1\nabcd2\n"), "--block", "1")
    assert [one["hit_tokens"] for one in found["prompts"]] == [0, 4] and found["blocks"] == 6


def test_one_prompt_and_equal_prompts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert answer(capsys, "share", "--prompts", written(tmp_path, "abc"))["prompts"][0]["hit_tokens"] == 0
    same = answer(capsys, "share", "--prompts", written(tmp_path, "abc\nabc"), "--block", "1")["prompts"][1]
    assert same == {"tokens": 3, "hit_tokens": 2, "first_difference": None}


def test_newlines_and_backslashes() -> None:
    assert prompts_of("a\\nb\nc\\\\nd\r\n") == ["a\nb", "c\\nd"]


@pytest.mark.parametrize(
    ("content", "words", "sentence"),
    [
        ("abc\n\nabc\n", (), "Prompt 2 is empty"),
        ("", (), "is empty"),
        ("abc", ("--block", "0"), "--block 0 must be at least 1"),
        ("abc", ("--block", "999"), "choose from 1 to 256"),
        ("abcdefgh", ("--block", "2", "--blocks", "3"), "Prompt 1 needs 4 blocks of 2 and the budget is 3"),
        ("abc", ("--blocks", "0"), "--blocks 0 must be at least 1"),
    ],
)
def test_nonsense_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in refused(capsys, "share", "--prompts", written(tmp_path, content), *words)

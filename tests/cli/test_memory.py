"""``python -m kvviz memory``, as a script would call it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvviz.memory.fields import MAX_CONFIG_BYTES
from tests.cli.test_command_line import answer, refused
from tests.memory.examples import LLAMA_4

TOKENS = ("--tokens", "4096")


def test_the_fields_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """Known fault 129: a hybrid gets one number, which is right for none of its groups."""
    row = answer(capsys, "memory", "--model", "gemma-3-27b", "--tokens", "131072")
    assert row["bytes"] == sum(group["bytes"] for group in row["groups"]) == 11_173_625_856
    assert row["growth_bytes_per_token"] == 81_920 and row["size"] == "10.41 GiB (11.17 GB)"
    assert [(group["layers"], group["kind"]) for group in row["groups"]] == [(52, "sliding"), (10, "full")]
    assert row["formula"].startswith("2 × 52 layers × 1,024 tokens × 16 KV heads × 128 × 2 B + 2 × 10 layers")
    assert set(row["allocated_without_policy"]) == {"paged", "paged_windows", "llama_cpp"}


def test_a_config_from_a_file_and_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text("\ufeff" + json.dumps(LLAMA_4), encoding="utf-8")
    row = answer(capsys, "memory", "--config", str(path), *TOKENS)
    assert row["bytes"] == 4096 * 196_608
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(LLAMA_4).encode())))
    assert answer(capsys, "memory", "--config", "-", *TOKENS) == row


def test_policy_storage_batch_dtype_and_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    """Known fault 131: the number format of the weights is taken for that of the cache."""
    model = ("memory", "--model", "Meta-Llama-3-8B", *TOKENS)
    plain = answer(capsys, *model)["bytes"]
    assert plain == 536_870_912
    assert answer(capsys, *model, "--batch", "4")["bytes"] == 4 * plain
    assert answer(capsys, *model, "--dtype", "float32")["bytes"] == 2 * plain
    assert answer(capsys, *model, "--storage", "q8_0")["bytes"] == plain // 2 * 34 // 32
    assert answer(capsys, *model, "--gpus", "16")["bytes"] == plain // 8
    limited = answer(capsys, *model, "--policy", "window:budget=512")
    assert limited["bytes"] == plain // 8 and limited["growth_bytes_per_token"] == 0
    late = answer(capsys, *model, "--policy", "snapkv:budget=64", "--prompt-tokens", "4000")
    assert late["bytes"] == (64 + 96) * 131_072


def test_block_storage_fills_the_cells_of_the_engine_that_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    from kvviz.cli.main import main

    model = ("memory", "--model", "gpt-oss-20b", "--tokens", "8192")
    plain = answer(capsys, *model)
    assert plain["allocated_without_policy"]["llama_cpp"] == 220_200_960
    assert main([*model, "--storage", "q8_0", "--json"]) == 0
    captured = capsys.readouterr()
    row = json.loads(captured.out)
    assert row["bytes"] == 108_625_920
    assert row["allocated_without_policy"]["llama_cpp"] == 220_200_960 // 2 * 34 // 32
    pages = ("paged", "paged_windows")
    assert all(row["allocated_without_policy"][name] == plain["allocated_without_policy"][name] for name in pages)
    assert "paged, paged_windows hold bfloat16: no q8_0 there." in captured.err
    assert main([*model, "--storage", "int4", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["allocated_without_policy"] == plain["allocated_without_policy"]
    assert "paged, paged_windows, llama_cpp hold bfloat16: no int4" in captured.err


def test_the_help_says_that_growth_may_be_negative(capsys: pytest.CaptureFixture[str]) -> None:
    from kvviz.cli.main import main

    with pytest.raises(SystemExit):
        main(["memory", "--help"])
    assert "it is negative where coded storage" in " ".join(capsys.readouterr().out.split())
    growths = [
        answer(capsys, "memory", "--model", "Llama-3.1-8B", "--tokens", str(tokens), "--storage", "int4")
        for tokens in range(240, 260)
    ]
    assert min(row["growth_bytes_per_token"] for row in growths) < 0


def test_notes_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    from kvviz.cli.main import main

    assert main(["memory", "--model", "GLM-5", *TOKENS, "--json"]) == 0
    captured = capsys.readouterr()
    assert "indexer" in captured.err and json.loads(captured.out)["bytes"] == 4096 * 89_856


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--model", "llama-3.1-9b", *TOKENS], "did you mean 'meta-llama/Llama-3.1-8B'"),
        (["--model", "GLM-5", "--tokens", "0"], "--tokens 0 must be a whole number from 1 to 1,000,000,000,000."),
        (["--model", "GLM-5", *TOKENS, "--batch", "-1"], "--batch -1 must be a whole number from 1"),
        (["--model", "GLM-5", *TOKENS, "--dtype", "float7"], "There is no number format 'float7'"),
        (["--model", "GLM-5", *TOKENS, "--storage", "int4"], "choose native, q8_0 or q4_0"),
        (["--model", "GLM-5", *TOKENS, "--storage", "int5"], "There is no storage 'int5'"),
        (["--model", "GLM-5", *TOKENS, "--policy", "windw"], "did you mean 'window'"),
        (["--model", "GLM-5", *TOKENS, "--gpus", "7"], ""),
        (["--model", "Llama-3.1-8B", *TOKENS, "--gpus", "7"], "32 query heads cannot be shared evenly by 7 GPUs"),
        (["--model", "GLM-5", *TOKENS, "--prompt-tokens", "9999"], "--prompt-tokens 9999 must be at most --tokens"),
        (["--model", "GLM-5"], "The command needs --tokens"),
        ([*TOKENS], "The command needs --model or --config"),
        (["--model", "GLM-5", "--config", "x", *TOKENS], "--model and --config exclude each other"),
        (["--config", "/no/such/file", *TOKENS], "The file '/no/such/file' cannot be read: No such file"),
    ],
)
def test_bad_options_end_with_one_sentence(
    capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    if sentence:
        assert sentence in refused(capsys, "memory", *options)
    else:  # a latent is copied, whatever the number of GPUs
        assert answer(capsys, "memory", *options)["bytes"] == 4096 * 89_856


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not UTF-8 text: byte 0"),
        (b" " * (MAX_CONFIG_BYTES + 1), "at most 1,000,000 are read"),
        (b'{"num_hidden_layers": 3}', "no num_attention_heads"),
    ],
    ids=["empty", "utf-16", "long", "short"],
)
def test_a_bad_config_ends_with_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert sentence in refused(capsys, "memory", "--config", str(path), *TOKENS)

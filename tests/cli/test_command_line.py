"""The command line on the real model, as a script would call it."""

from __future__ import annotations

import io
import json
import math
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kvviz.choices.texts import MAX_UPLOAD_BYTES, PRESETS
from kvviz.cli import inputs
from kvviz.cli.main import main
from kvviz.policies import POLICIES, parse_policy
from kvviz.run.generate import choose
from kvviz.ui.shell import serve
from tests.tiny import VOCABULARY, tiny

TOKENS = 48
ROOT = Path(__file__).parents[2]


class Bytes:
    """A tokenizer for tiny models: one token a byte, none for the words it is told to skip."""

    eos_token_id = None

    def __init__(self, skip: str = "") -> None:
        self.skip = skip

    def __call__(self, text: str, **options: Any) -> dict[str, list[int]]:
        return {"input_ids": [] if text == self.skip else [byte % VOCABULARY for byte in text.encode()]}

    def decode(self, ids: Any) -> str:
        return " ".join(map(str, ids))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("text") / "story.txt"
    path.write_text(PRESETS["story"].text(), encoding="utf-8")
    return str(path)


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a model fails the test."""
    monkeypatch.setattr(inputs, "load_model", lambda arguments: pytest.fail("the model was loaded"))


@pytest.fixture
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model is a tiny one that reads bytes."""
    loaded = SimpleNamespace(model=tiny("llama"), tokenizer=Bytes())
    monkeypatch.setattr(inputs, "load_model", lambda arguments: loaded)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that bad input ends with."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("kvviz: ") and captured.err.endswith(".\n")
    assert captured.err.count("\n") == 1 and "Traceback" not in captured.err
    return captured.err.removeprefix("kvviz: ").strip()


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


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nll", "--policy", "windw"], "did you mean 'window'"),
        (["nll", "--policy", "window:budget=0"], "budget=0"),
        (["nll", "--pattern", "slidin"], "did you mean 'sliding'"),
        (["nll", "--positions", "slots"], "did you mean 'slot'"),
        (["nll", "--storage", "int99"], "int99"),
        (["nll", "--softmax", "of_by_one"], "did you mean 'off_by_one'"),
        (["nll", "--tokens", "0"], "--tokens 0 must be at least 1."),
        (["nll", "--tokens", "1"], "One token has no loss"),
        (["nll", "--prompt-tokens", "0"], "--prompt-tokens 0 must be at least 1."),
        (["nll", "--tokens", "8", "--prompt-tokens", "9"], "--prompt-tokens 9 must be from 1 to 8"),
        (["keep", "--tokens", "1", "--prompt-tokens", "2"], "--prompt-tokens 2 must be from 1 to 1"),
        (["nll", "--score-from", "-1"], "--score-from -1 must be at least 0."),
        (["nll", "--tokens", "8", "--score-from", "8"], "--score-from 8 must be from 0 to 7"),
        (["nll", "--block", "0"], "--block 0 must be at least 1."),
        (["nll", "--stepwise", "--block", "3"], "--stepwise means blocks of one token and --block 3 does not"),
        (["keep", "--layer", "-1"], "--layer -1 must be at least 0."),
        (["keep", "--head", "-1"], "--head -1 must be at least 0."),
        (["attention", "--sinks", "0"], "--sinks 0 must be at least 1."),
        (["attention", "--tokens", "8", "--prompt-tokens", "8"], "No query follows the prompt"),
        (["attention", "--tokens", "1"], "No query follows the prompt"),
    ],
)
def test_bad_options_are_refused_before_the_model_is_loaded(
    capsys: pytest.CaptureFixture[str], text: str, arguments: list[str], sentence: str
) -> None:
    assert sentence in refused(capsys, *arguments, "--text", text)


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--prompt", ""], "The prompt is empty"),
        (["--prompt", "caf\udce9"], "The prompt is not UTF-8 text: byte 3"),
        (["--prompt", "a", "--policy", "windw"], "did you mean 'window'"),
        (["--prompt", "a", "--temperature", "-1"], "--temperature -1.0 must be at least 0."),
        (["--prompt", "a", "--temperature", "nan"], "temperature=nan"),
        (["--prompt", "a", "--top-p", "2"], "top_p=2.0 must be above 0 and at most 1."),
        (["--prompt", "a", "--seed", "-1"], "--seed -1 must be at least 0."),
        (["--prompt", "a", "--max-new-tokens", "0"], "--max-new-tokens 0 must be at least 1."),
    ],
)
def test_a_bad_prompt_is_refused_before_the_model_is_loaded(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    more = () if "--max-new-tokens" in arguments else ("--max-new-tokens", "2")
    assert sentence in refused(capsys, "generate", *more, *arguments)


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("", "A command is missing; the choices are: policies, nll, keep, attention, generate"),
        ("nl", "There is no command 'nl'; did you mean 'nll'? The choices are: policies, nll, keep"),
        ("nll", "The command needs --text; `python -m kvviz nll --help` explains."),
        ("nll --text f --pol full", "There is no option '--pol'; did you mean '--policy'? The choices are: --json, "),
        ("nll --text f --pol=full", "There is no option '--pol=full'; did you mean '--policy'?"),
        ("nll --tex f --text f", "There is no option '--tex'; did you mean '--text'?"),
        ("policies --text f", "There is no option '--text'; "),
        ("nll --text f extra", "The word 'extra' belongs to no option; leave it out"),
        ("nll --text", "--text needs a value, written --text=VALUE where it begins with a dash;"),
        ("nll --text f --tokens many", "--tokens 'many' is not a whole number such as 256;"),
        ("nll --text f --tokens 1_0", "--tokens '1_0' is not a whole number such as 256;"),
        ("nll --text f --json=yes", "--json takes no value, leave 'yes' out;"),
        ("generate --max-new-tokens 2", "The command needs --prompt or --token-ids;"),
        ("generate --prompt a", "The command needs --max-new-tokens;"),
        ("generate --prompt a --token-ids b --max-new-tokens 2", "--prompt and --token-ids exclude each other"),
        ("generate --prompt a --max-new-tokens 2 --top-p most", "--top-p 'most' is not a number such as 0.7;"),
    ],
)
def test_what_does_not_parse_ends_with_one_plain_sentence(
    capsys: pytest.CaptureFixture[str], arguments: str, sentence: str
) -> None:
    assert refused(capsys, *arguments.split()).startswith(sentence)


@pytest.mark.parametrize(("option", "word"), [("--model", "gpt-5"), ("--dtype", "float8"), ("--device", "toaster")])
def test_a_bad_place_for_the_model_ends_with_one_sentence(
    capsys: pytest.CaptureFixture[str], text: str, option: str, word: str
) -> None:
    assert word in refused(capsys, "nll", option, word, "--text", text)


@pytest.mark.usefixtures("tiny_model")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nll", "--prompt-tokens", "13"], "--prompt-tokens 13 must be from 1 to 12, the number of tokens."),
        (["nll", "--tokens", "99", "--score-from", "12"], "--score-from 12 must be from 0 to 11"),
        (["attention", "--prompt-tokens", "12"], "No query follows the prompt"),
        (["keep", "--layer", "3"], "no layer 3, KV head 0: this model has layers 0–2 and KV heads 0–1"),
    ],
)
def test_what_only_the_text_or_the_model_shows_to_be_wrong(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "text").write_bytes(b"twelve bytes")
    assert sentence in refused(capsys, *arguments, "--text", str(tmp_path / "text"))


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"caf\xe9", "is not UTF-8 text: byte 3"),
        (None, "cannot be read: No such file or directory."),
    ],
)
def test_a_bad_file_ends_with_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / "text"
    if content is not None:
        path.write_bytes(content)
    said = refused(capsys, "nll", "--text", str(path))
    assert sentence in said and str(path) in said
    assert "Is a directory" in refused(capsys, "nll", "--text", str(tmp_path))


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "[1, 2.5]", "[true]", "[-1]", "[2147483648]", "words", "[" * 100_000]
)
def test_bad_token_ids_end_with_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str) -> None:
    path = tmp_path / "ids"
    path.write_text(content, encoding="utf-8")
    said = refused(capsys, "generate", "--token-ids", str(path), "--max-new-tokens", "2")
    assert "one JSON list of whole token numbers" in said


def test_no_standard_input_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, no_model: None
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert refused(capsys, "nll", "--text", "-").startswith("There is no standard input to read")


@pytest.mark.parametrize("content", ["a\r\nb\n", "  \n\t \u3000", "a\ufeffb", "\ufeff\ufeffa"])
def test_a_file_and_standard_input_lose_only_one_leading_byte_order_mark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str
) -> None:
    path, expected = tmp_path / "text", content.removeprefix("\ufeff")
    path.write_bytes(content.encode())
    assert inputs.read_text(str(path)) == expected
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content.encode())))
    assert inputs.read_text("-") == expected


def test_the_size_limit_is_for_uploads_only(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"a" * (MAX_UPLOAD_BYTES + 1))
    assert len(inputs.read_text(str(tmp_path / "long"))) == MAX_UPLOAD_BYTES + 1


@pytest.mark.usefixtures("tiny_model")
@pytest.mark.parametrize("blanks", ["  ", " \n\t\r\n  ", "\u3000\u2003"])
def test_blanks_alone_are_a_text(capsys: pytest.CaptureFixture[str], tmp_path: Path, blanks: str) -> None:
    (tmp_path / "blanks").write_bytes(blanks.encode())
    options = ("--text", str(tmp_path / "blanks"))
    assert answer(capsys, "nll", *options)["tokens"] == len(blanks.encode())
    assert len(answer(capsys, "keep", *options)["kept"]) == len(blanks.encode())
    assert len(answer(capsys, "attention", *options)["entropy"]) == 3
    assert len(answer(capsys, "generate", "--prompt", blanks, "--max-new-tokens", "2")["token_ids"]) == 2


def test_a_text_without_any_token_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = SimpleNamespace(model=tiny("llama"), tokenizer=Bytes(skip="  "))
    monkeypatch.setattr(inputs, "load_model", lambda arguments: loaded)
    (tmp_path / "blanks").write_bytes(b"  ")
    for command in ("nll", "keep", "attention"):
        assert "makes no token of the text" in refused(capsys, command, "--text", str(tmp_path / "blanks"))
    assert "makes no token of the text" in refused(capsys, "generate", "--prompt", "  ", "--max-new-tokens", "2")


@pytest.mark.usefixtures("tiny_model")
@pytest.mark.parametrize(
    ("content", "note"),
    [("a", "The text has only 1 token; it is used.\n"), ("ab", "The text has only 2 tokens; all of them are used.\n")],
)
def test_counts_are_spelled_in_the_right_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, note: str
) -> None:
    (tmp_path / "text").write_text(content, encoding="utf-8")
    assert main(["keep", "--text", str(tmp_path / "text"), "--tokens", "5", "--json"]) == 0
    assert capsys.readouterr().err == note


@pytest.mark.usefixtures("tiny_model")
def test_stepwise_is_blocks_of_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"twelve bytes")
    options = ("nll", "--policy", "h2o:budget=4", "--text", str(tmp_path / "text"))
    rows = [answer(capsys, *options, *more) for more in (["--stepwise"], ["--stepwise", "--block", "1"], [])]
    for row in rows:
        assert row["nll_per_token"] == pytest.approx(rows[0]["nll_per_token"], abs=1e-9)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.mark.parametrize("word", ["abc", "", "0", "-1", "65536", "8501x", "٨", "85 01", "9" * 50])
def test_the_server_refuses_what_is_no_port(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setattr(serve.cli, "main", lambda **options: pytest.fail("the server was started"))
    monkeypatch.setattr(sys, "argv", ["serve", "--server.port", word])
    assert serve.main() == 2
    said = capsys.readouterr().err
    assert said == f"kvviz: The port {word!r} is not a whole number from 1 to 65535; {serve.CURE}.\n"


def test_the_server_refuses_a_port_in_use(taken_port: int) -> None:
    with pytest.raises(ValueError, match=rf"The port {taken_port} is in use by another program; .*make run PORT="):
        serve.check_port(["--server.headless=true", f"--server.port={taken_port}"])
    with pytest.raises(ValueError, match="is in use"):
        serve.check_port(["--server.address", "127.0.0.1", "--server.port", str(taken_port)])


def test_the_server_takes_a_free_port_or_none(taken_port: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve.check_port(["--server.port", str(port)])
    serve.check_port([f"--server.port={taken_port}", f"--server.port={port}"])  # the last one counts
    serve.check_port([])


def test_it_runs_as_a_module_and_prints_only_json() -> None:
    command = [sys.executable, "-m", "kvviz", "policies", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) and done.stderr == ""


def test_an_option_given_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The last of two policies won without a word."""
    twice = ["--policy", "window:budget=4", "--policy=full"]
    assert "--policy is given 2 times; give it once" in refused(capsys, "nll", "--text", "x", *twice)


def test_the_smallest_temperature_and_share_are_the_likeliest_token() -> None:
    """They ended in a traceback about probabilities that are no numbers."""
    logits, generator = torch.tensor([1.0, 3.0, 2.0]), torch.Generator().manual_seed(0)
    assert {choose(logits, 1e-38, 1.0, generator) for _ in range(5)} == {1}
    assert {choose(logits, 5e-324, 1.0, generator) for _ in range(5)} == {1}
    assert {choose(logits, 1.0, 1e-300, generator) for _ in range(5)} == {1}


def test_the_smallest_attention_window_is_named() -> None:
    """The sentence said "choose at most 0"."""
    with pytest.raises(ValueError, match="choose a budget of at least 2"):
        parse_policy("attention_window:budget=1")


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    line = command.replace("KVVIZ", f"{sys.executable} -m kvviz")
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env={**os.environ, **environment}, cwd=ROOT, check=False
    )


def test_closed_streams_and_poor_terminals() -> None:
    """Notes came before the JSON where standard error was closed; the others ended in a traceback."""
    closed = shell("KVVIZ policies --json >&-")
    assert closed.returncode == 2 and closed.stderr == (
        "kvviz: the answer cannot be written: standard output is closed.\n"
    )
    pattern = "--pattern dilated:window=3,dilation=1/2 --layers 2 --tokens 9"
    assert json.loads(shell(f"KVVIZ reach {pattern} --json 2>&-").stdout)["layers"]
    poor = shell("KVVIZ memory --model Llama-3.1-8B --tokens 10", PYTHONIOENCODING="ascii")
    assert poor.returncode == 0 and "Traceback" not in poor.stderr and "bytes" in poor.stdout


INTERRUPTED = """
import runpy, sys
class Interrupted:
    def find_spec(name, path=None, target=None):
        if name == "kvviz.cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted)
runpy.run_module("kvviz", run_name="__main__")
"""


def test_ctrl_c_while_the_commands_are_imported() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 130 and not done.stderr

"""The run report: its fields, its variants and what it refuses."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch

from kvviz.analysis.report import spread, variants
from kvviz.choices.setup import Setup
from kvviz.choices.storage import Int4, Offload
from kvviz.cli import inputs
from kvviz.cli.main import main
from tests.cli.test_command_line import Bytes
from tests.tiny import tiny

FIELDS = {
    *("model", "dtype", "device", "threads", "prompt_tokens", "new_tokens", "concurrency", "peak_host_bytes"),
    *("peak_device_bytes", "prefill_seconds", "ttft_seconds", "tokens_per_second", "cache_bytes", "needles", "after"),
}


@pytest.fixture
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = SimpleNamespace(
        model=tiny("llama"),
        tokenizer=Bytes(),
        card=SimpleNamespace(name="tiny"),
        dtype=torch.float64,
        device=torch.device("cpu"),
    )
    monkeypatch.setattr(inputs, "load_model", lambda arguments: loaded)


@pytest.mark.usefixtures("tiny_model")
def test_a_report_has_all_that_has_to_be_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--policy", "window:budget=16", "--tokens", "64", "--max-new-tokens", "5", "--repeats", "2", "--json"]
    assert main(["report", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) >= FIELDS and found["prompt_tokens"] == 64 and found["new_tokens"] == 5
    assert found["cache_bytes"] == 3 * 2 * 16 * 16 * 8
    assert found["needles"] is None and found["peak_device_bytes"] is None
    assert 0 < found["prefill_seconds"] <= found["ttft_seconds"] and found["peak_host_bytes"] > 2**20
    rates = found["tokens_per_second"]
    assert 0 < rates["low"] <= rates["median"] <= rates["high"]
    setups = ["full", "streaming:budget=16,sinks=4", "full · int4:group=32,residual=32", "full · offload:resident=16"]
    assert [row["setup"] for row in found["after"]] == setups
    assert all(list(row) == ["setup", "nll", "cache_bytes", "tokens_per_second"] for row in found["after"])
    held = [row["cache_bytes"] for row in found["after"]]
    assert held[1] < held[2] < held[0] == held[3]


def test_three_ways_to_hold_less_one_at_a_time() -> None:
    full, evicted, quantised, offloaded = variants(Setup(), 400)
    assert full == Setup() and str(evicted.policy) != str(full.policy) and evicted.storage == full.storage
    assert quantised.storage == Int4() and offloaded.storage == Offload(resident=100)
    assert quantised.policy == offloaded.policy == full.policy


def test_the_median_and_the_range() -> None:
    assert spread([3.0, 1.0, 8.0]) == {"median": 3.0, "low": 1.0, "high": 8.0}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--max-new-tokens", "1"], "max_new_tokens=1 gives no rate"),
        (["--tokens", "3"], "A prompt of 3 tokens is too short for a report"),
        (["--repeats", "0"], "--repeats 0 must be at least 1."),
        (["--policy", "recompute:budget=8"], "recompute has no cache to report on"),
    ],
)
def test_what_cannot_be_timed_is_refused_before_a_model_is_loaded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.setattr(inputs, "load_model", lambda arguments: pytest.fail("the model was loaded"))
    options = {"--tokens": "64", "--max-new-tokens": "4"} | {words[0]: words[1]}
    assert main(["report", *[word for pair in options.items() for word in pair]]) == 2
    assert sentence in capsys.readouterr().err

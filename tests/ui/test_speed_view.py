"""What the Speed page says: how fast, how far from the limit, and what grows with the context."""

from __future__ import annotations

from kvviz.analysis.report_words import report_markdown
from kvviz.figures.speed import Steps
from kvviz.ui.shell.state import View
from kvviz.ui.speed import parts
from kvviz.ui.speed import view as look
from kvviz.ui.speed.report import report_job
from kvviz.ui.speed.steps import Far, Speeds, lengths_of, steps_job

MIB = 2**20
A = Steps("A: window", "a", (64, 1024), (0.04, 0.05), (0.04, 0.05), (0.06, 0.08), (2 * MIB, 2 * MIB))
B = Steps("B: full", "b", (64, 1024), (0.04, 0.08), (0.04, 0.07), (0.05, 0.09), (3 * MIB, 48 * MIB))
WINDOW = [Far(4096, 2 * MIB, 10**8, 10**6), Far(131_072, 2 * MIB, 10**8, 10**6)]
FULL = [Far(4096, 180 * MIB, 10**8, 10**8), Far(131_072, 32 * 180 * MIB, 10**8, 32 * 10**8)]
FOUND = Speeds([A, B], 498 * MIB, 20_000 * MIB, [WINDOW, FULL], "a model, float32 on cpu, 2 threads")


def test_the_headline_has_both_speeds_and_both_limits() -> None:
    assert look.headline(FOUND) == (
        "After 1,024 tokens A decodes 20 tokens/s: a step takes 2 times as long as reading weights and cache alone; "
        "B decodes 12.5 tokens/s: a step takes 2.9 times as long as reading weights and cache alone."
    )
    assert (
        look.growth(FOUND)
        == "From 64 to 1,024 tokens a step takes 1.25 times as long under A and 2.00 times as long under B."
    )
    assert "reads 21 GB/s from memory; a step reads 498 MiB of weights" in look.measured_on(FOUND)


def test_the_full_cache_reads_32_times_as_much_and_a_window_just_as_much() -> None:
    said = parts.work_words(FOUND)
    assert said.startswith(
        "From 4,096 to 131,072 tokens a step reads just as many bytes under A and 32 times as many bytes under B from "
        "the cache, while its multiplications with the weights stay the same"
    )
    assert parts.row("B", FULL[1]) == "| B | 131,072 | 100.0 million | 3,200.0 million | 5,760.0 MiB |"
    assert parts.grown(Far(1, 0, 1, 1), Far(2, 0, 1, 1)) == "nothing"


def test_a_time_belongs_to_its_machine_and_its_setups() -> None:
    view = View()
    (key, _), (other, _) = steps_job(view, 1024), steps_job(view, 512)
    assert key != other and key[1] == view.experiment.model and len({str(part) for part in key[-2:]}) == 2
    assert report_job(view, 512, 32, 3)[0] != report_job(view, 512, 32, 4)[0]
    assert lengths_of(1024) == [64, 128, 256, 512, 1024] and lengths_of(64) == [4, 8, 16, 32, 64]


def test_the_report_in_words_has_every_number() -> None:
    report = {
        **{"model": "M", "dtype": "float32", "device": "cpu", "threads": 2, "setup": "window:budget=16"},
        **{"prompt_tokens": 64, "new_tokens": 5, "concurrency": 1, "repeats": 3, "cache_bytes": 3 * MIB},
        **{"peak_host_bytes": 2048 * MIB, "peak_device_bytes": None, "prefill_seconds": 0.5, "ttft_seconds": 0.51},
        "tokens_per_second": {"median": 20.0, "low": 18.0, "high": 21.0},
        "needles": {"task": "passkey", "found": 1, "of": 5, "interval": (0.04, 0.62), "void": False},
        "after": [{"setup": "full", "nll": 2.5, "cache_bytes": 9 * MIB, "tokens_per_second": 19.0}],
    }
    said = report_markdown(report)
    for words in (
        *("M, float32", "cpu, 2", "64, 5, 1", "2,048.0 MiB", "| peak memory of the GPU | none |", "0.5 s", "0.51 s"),
        *("20 tokens/s (18 to 21)", "3.0 MiB", "1 of 5 (95 % interval 4% to 62%)", "| `full` | 2.500 | 9.0 MiB | 19 |"),
    ):
        assert words in said
    assert "void: the full cache" in report_markdown({**report, "needles": {**report["needles"], "void": True}})
    assert "too short" in report_markdown({**report, "needles": None})

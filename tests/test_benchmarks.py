"""``make bench``: every number beside the asked one, a file a part, README's table from the files and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import __main__ as bench
from benchmarks import results
from benchmarks.results import Figure, Row, methods_table, ratio_figure, table


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    return tmp_path / "results"


def test_a_ratio_is_the_median_over_the_rounds_and_says_whether_it_is_met() -> None:
    figure = ratio_figure("a by b", [2.0, 3.0, 9.0], [1.0, 1.0, 3.0], "≤ 2.5")
    assert (figure.value, figure.low, figure.high, figure.is_met) == (3.0, 2.0, 3.0, False)
    assert str(figure) == "a by b: 3 (2–3) ×   wanted ≤ 2.5"
    assert Figure("x", 22.3, "×", "≥ 22.2").is_met and Figure("x", 1.0).is_met is None


def test_a_part_that_fails_says_so_and_leaves_no_old_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks() -> Iterator[Figure]:
        yield Figure("first", 2.0)
        raise OSError("no such environment")

    results.write("kvpress", [Figure("old", 1.0)])
    monkeypatch.setitem(bench.PARTS, "kvpress", breaks)
    bench.measure("kvpress")
    written = json.loads((folder / "kvpress.json").read_text("utf-8"))
    assert written["figures"] == [] and written["cannot_run"] == "no such environment"
    assert "| kvpress | could not run: no such environment | – | – |" in table(results.read_all())


def test_the_table_has_value_range_and_what_was_missed(folder: Path) -> None:
    results.write("speed", [Figure("a", 0.71, "×", "≤ 0.8", 0.7, 0.72), Figure("b", 3.0, "×", "≤ 2")])
    said = table(results.read_all())
    assert "| speed | a | 0.71 × (0.7–0.72) | ≤ 0.8 |" in said and "| speed | b | 3 × | ≤ 2 **missed** |" in said
    assert "threads" in said and "torch" in said


def test_the_readme_shows_the_committed_results() -> None:
    text, parts = results.README.read_text("utf-8"), results.read_all()
    assert table(parts) in text and methods_table(parts) in text


def test_a_method_that_was_not_measured_has_no_row(folder: Path) -> None:
    results.write("methods", [Row("full", "a remark", 2.0, 3 * 2**20, 1.25)])
    assert "| `full` (a remark) | 2.000 | 7.4 | 3.00 MiB | 1.2× |\n\nMeasured on " in methods_table(results.read_all())
    results.write("methods", [], cannot="no memory")
    assert methods_table(results.read_all()) == "Not measured: no memory."


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["sped"]) == 2
    assert "There is no part 'sped'; choose from: equality, speed" in capsys.readouterr().err

"""Results on disk: found again by what they depend on, and by nothing else; whatever is wrong with them is a miss."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kvviz.choices.experiment import Experiment
from kvviz.choices.setup import Setup
from kvviz.models import DEFAULT_MODEL
from kvviz.policies.window import Window
from kvviz.run.trace import Trace
from kvviz.ui.shell import disk_results, runs
from kvviz.ui.shell.disk_results import DiskResults, address, packed, unpacked
from kvviz.ui.shell.jobs import SETUP, Job, Worker
from kvviz.ui.shell.runs import Run, key_of

HERE = "float32 on cpu"
KEY = key_of(Experiment(Setup(Window(budget=4))), 3)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of its own with the manifest of a model."""
    monkeypatch.setenv("KVVIZ_CACHE", str(tmp_path))
    (tmp_path / DEFAULT_MODEL).mkdir()
    write_weights(tmp_path, "abc")
    yield tmp_path / "results"


def write_weights(cache: Path, sha256: str) -> None:
    manifest = {"files": {"model.safetensors": {"bytes": 1, "sha256": sha256}}}
    (cache / DEFAULT_MODEL / "kvviz.json").write_text(json.dumps(manifest))


def some_run() -> Run:
    lifetimes = np.full((2, 1, 3), 3, dtype=np.int32)
    trace = Trace(
        kind="replayed",
        setup=Setup(Window(budget=4)),
        token_ids=np.array([5, 6, 7]),
        prompt_tokens=1,
        evicted_at=lifetimes,
        nll=np.array([0.5, 0.25]),
        freed_at=lifetimes.copy(),
        stored=((1, None), (1, None)),  # type: ignore[arg-type]
        cache_bytes=96,
        seconds=0.1,
        query_heads=2,
        maps={(1, 0): np.ones((3, 3), dtype=np.float32)},
    )
    return Run(trace, ["a", "b", "c"], ["0 a", "1 b", "2 c"], 0, ("a note",))


def disk(folder: Path, place: str | None = HERE) -> DiskResults:
    return DiskResults(folder, lambda model: place)


def test_a_run_comes_back_as_it_was_and_says_when_it_was_computed(folder: Path) -> None:
    disk(folder).put(KEY, some_run(), is_setup=True)
    found = disk(folder, place=None).get(KEY)  # a new start: nobody knows yet where the model will run
    assert found is not None
    run, stamp = found
    assert run.trace.setup == Setup(Window(budget=4)) and run.labels == ["0 a", "1 b", "2 c"]
    assert run.trace.nll.tolist() == [0.5, 0.25] and run.trace.maps[1, 0].shape == (3, 3)
    assert not run.trace.nll.flags.writeable and not run.trace.maps[1, 0].flags.writeable
    assert stamp.is_setup and stamp.is_here and stamp.place == HERE
    assert disk(folder).get(key_of(Experiment(Setup(Window(budget=5))), 3)) is None


@pytest.mark.parametrize("change", ["weights", "code", "versions", "place"])
def test_what_it_was_computed_with_decides(folder: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    disk(folder).put(KEY, some_run(), is_setup=False)
    assert disk(folder).get(KEY) is not None
    if change == "weights":
        write_weights(folder.parent, "abd")
    elif change == "place":
        assert disk(folder, "bfloat16 on cuda").get(KEY) is None
        return
    else:
        monkeypatch.setattr(disk_results, change, lambda: "other")
    assert disk(folder).get(KEY) is None


def test_a_damaged_entry_is_computed_anew(folder: Path) -> None:
    kept = disk(folder)
    kept.put(KEY, some_run(), is_setup=False)
    entry = bytearray(kept.entries[address(KEY)])
    entry[len(entry) // 2] ^= 1
    kept.entries[address(KEY)] = bytes(entry)
    assert kept.get(KEY) is None
    worker = Worker(disk=kept)
    (job,) = worker.want("page", [(KEY, lambda job: some_run())])
    assert job.wait(5) and job.error is None and worker.computed == 1


def test_an_entry_in_the_place_of_another_is_no_answer(folder: Path) -> None:
    kept, other = disk(folder), key_of(Experiment(Setup(Window(budget=5))), 3)
    kept.put(KEY, some_run(), is_setup=False)
    kept.entries[address(other)] = kept.entries[address(KEY)]
    assert kept.get(other) is None and kept.get(KEY) is not None


def test_a_damaged_database_is_begun_anew(folder: Path) -> None:
    disk(folder).put(KEY, some_run(), is_setup=False)
    for file in folder.glob("cache.db*"):
        file.write_bytes(b"no database " * 400)
    kept = disk(folder)
    assert kept.get(KEY) is None
    kept.put(KEY, some_run(), is_setup=False)
    assert disk(folder).get(KEY) is not None


def test_an_entry_runs_no_code(folder: Path) -> None:
    class Foreign:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return print, ("this must not run",)

    for bad in (Foreign(), json.loads, Path("x")):
        with pytest.raises(pickle.UnpicklingError, match="no type of kvviz"):
            unpacked(packed(bad, disk_results.Stamp(0.0, False, HERE, ""), "name"), "name")


def test_a_model_whose_files_are_not_checked_leaves_nothing(folder: Path) -> None:
    key = key_of(replace(Experiment(Setup()), model="some/folder"), 3)
    disk(folder).put(key, some_run(), is_setup=False)
    assert disk(folder).get(key) is None and len(disk(folder).entries) == 0


def test_what_is_too_large_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_results, "ENTRY_LIMIT", 100)
    disk(folder).put(KEY, some_run(), is_setup=False)
    assert disk(folder).get(KEY) is None


def test_another_process_finds_it_without_torch(folder: Path) -> None:
    disk(folder).put(KEY, some_run(), is_setup=False)
    words = (
        "import sys; from tests.ui.test_disk_results import KEY, Path, disk; "
        f"print(disk(Path({str(folder)!r}), None).get(KEY)[0].trace.nll.tolist(), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[0.5, 0.25] False"


def test_a_second_worker_computes_nothing(folder: Path) -> None:
    def compute(job: Job) -> Run:
        return some_run()

    first = Worker(disk=disk(folder))
    (job,) = first.want(SETUP, [(KEY, compute)])
    assert job.wait(5)
    first.executor.shutdown()  # what is kept is written after the page has its result
    second = Worker(disk=disk(folder))
    (again,) = second.want("page", [(KEY, lambda job: pytest.fail("it is there"))])
    assert again.done.is_set() and second.computed == 0
    assert again.stamp.is_setup and again.result.trace.cache_bytes == 96
    assert second.stamps[KEY] == again.stamp


def test_tests_and_notebooks_keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(disk_results.KEEP_RESULTS, raising=False)
    assert disk_results.opened(runs.place_of) is None

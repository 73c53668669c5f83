"""The worker: one job at a time, shared results, and nothing computed that nobody waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kvviz.ui.shell import jobs
from kvviz.ui.shell.jobs import Job, Stopped, Worker

SOON = 5.0


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Closed until a test opens it; opened at the end, so that no thread is left behind."""
    event = threading.Event()
    yield event
    event.set()


def held(gate: threading.Event) -> Callable[[Job], str]:
    """A computation that reports every few milliseconds and ends when the gate opens."""

    def compute(job: Job) -> str:
        while not gate.wait(0.005):
            job.report("working", 0.5)
        return f"result of {job.key}"

    return compute


def started(job: Job) -> None:
    end = time.monotonic() + SOON
    while job.message != "working" and time.monotonic() < end:
        time.sleep(0.002)
    assert job.message == "working"


def test_a_result_is_computed_once_and_kept() -> None:
    worker = Worker()
    (job,) = worker.want("me", [("k", lambda job: 42)])
    assert job.wait(SOON) and job.result == 42
    (again,) = worker.want("me", [("k", lambda job: pytest.fail("computed twice"))])
    assert again.done.is_set() and again.result == 42 == worker.result("k")
    assert worker.computed == 1 and worker.result("other") is None


def test_two_owners_share_one_running_job(gate: threading.Event) -> None:
    worker = Worker()
    (mine,) = worker.want("me", [("k", held(gate))])
    (yours,) = worker.want("you", [("k", held(gate))])
    assert mine is yours and mine.owners == {"me", "you"}
    worker.want("me", [])
    assert not mine.stop.is_set()  # you still wait
    gate.set()
    assert yours.wait(SOON) and yours.result == "result of k" and worker.computed == 1


def test_a_job_that_its_last_owner_leaves_is_stopped(gate: threading.Event) -> None:
    worker = Worker()
    (job,) = worker.want("me", [("k", held(gate))])
    started(job)
    (other,) = worker.want("me", [("other", lambda job: "quick")])
    assert other.wait(SOON) and other.result == "quick"
    assert isinstance(job.error, Stopped) and worker.computed == 1 and not worker.jobs


def test_six_quick_changes_compute_one_at_a_time_and_only_the_last(gate: threading.Event) -> None:
    worker, running, most = Worker(), 0, 0

    def compute(job: Job) -> object:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return held(gate)(job)
        finally:
            running -= 1

    wished = [worker.want("me", [(key, compute)])[0] for key in range(6)]
    started(wished[-1])
    gate.set()
    assert wished[-1].wait(SOON) and wished[-1].result == "result of 5"
    assert most == 1 and worker.computed == 1
    assert all(isinstance(job.error, Stopped) for job in wished[:-1])


def test_a_stopped_job_that_is_wanted_again_starts_anew(gate: threading.Event) -> None:
    worker = Worker()
    (first,) = worker.want("me", [("k", held(gate))])
    worker.want("me", [])
    (second,) = worker.want("me", [("k", held(gate))])
    assert second is not first
    gate.set()
    assert second.wait(SOON) and second.result == "result of k"


def test_a_job_whose_page_has_gone_ends_by_itself(monkeypatch: pytest.MonkeyPatch, gate: threading.Event) -> None:
    monkeypatch.setattr(jobs, "PATIENCE_SECONDS", 0.05)
    (job,) = Worker().want("me", [("k", held(gate))])
    assert job.done.wait(SOON) and isinstance(job.error, Stopped)


def test_a_queued_job_lives_while_its_page_waits(monkeypatch: pytest.MonkeyPatch, gate: threading.Event) -> None:
    """The second run of a page waits for the first; its page must be seen to wait for both."""
    monkeypatch.setattr(jobs, "PATIENCE_SECONDS", 0.15)
    both = Worker().want("me", [("a", held(gate)), ("b", held(gate))])
    for _ in range(20):
        for job in both:
            job.seen()
        time.sleep(0.02)
    gate.set()
    assert all(job.wait(SOON) for job in both) and [job.error for job in both] == [None, None]


def test_an_error_reaches_every_owner_and_is_not_kept() -> None:
    worker = Worker()

    def fail(job: Job) -> Any:
        raise ValueError("no such thing")

    (job,) = worker.want("me", [("k", fail)])
    assert job.wait(SOON) and str(job.error) == "no such thing"
    (again,) = worker.want("me", [("k", lambda job: "better")])
    assert again.wait(SOON) and again.result == "better"


def test_the_results_longest_unused_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "RESULTS_LIMIT", 3)
    worker = Worker()
    for key in "abcd":
        assert worker.want("me", [(key, lambda job: job.key)])[0].wait(SOON)
        worker.result("a")
    assert set(worker.results) == {"a", "c", "d"}


def test_results_are_bounded_in_bytes_but_the_newest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "BYTES_LIMIT", 100)
    worker = Worker(bytes_of=int)
    for size in (60, 30, 50, 400):
        assert worker.want("me", [(size, lambda job: job.key)])[0].wait(SOON)
        assert sum(worker.results) <= 100 or list(worker.results) == [400]
    assert list(worker.results) == [400]


def test_progress_is_kept_within_its_bounds() -> None:
    job = Job("k", lambda job: None)
    for share, shown in ((-1, 0.0), (0.25, 0.25), (7, 1.0)):
        job.report("reading", share)
        assert (job.message, job.share) == ("reading", shown)


def test_what_a_stopped_job_had_found_stays_until_it_is_computed(gate: threading.Event) -> None:
    worker = Worker()

    def compute(job: Job) -> str:
        job.partial = "half"
        return held(gate)(job)

    (job,) = worker.want("me", [("k", compute)])
    started(job)
    assert worker.partial("k") == "half"
    worker.want("me", [])
    assert job.done.wait(SOON) and worker.partial("k") == "half" and worker.result("k") is None
    (unlucky,) = worker.want("me", [("k", held(gate))])  # stopped again before it has found anything
    worker.want("me", [])
    assert unlucky.done.wait(SOON) and worker.partial("k") == "half"
    gate.set()
    (again,) = worker.want("me", [("k", compute)])
    assert again.wait(SOON) and worker.result("k") == "result of k" and worker.partial("k") is None


def test_only_the_latest_beginnings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PARTIAL_LIMIT", 2)
    worker = Worker()

    def fail(job: Job) -> None:
        job.partial = job.key
        raise Stopped

    for key in "abc":
        (job,) = worker.want("me", [(key, fail)])
        assert job.wait(SOON)
    assert [worker.partial(key) for key in "abc"] == [None, "b", "c"]

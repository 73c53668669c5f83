"""Long computations: one worker, results kept, and nothing computed that nobody waits for any more.

Changing a widget does not stop a running torch loop, so six quick changes would leave six of them computing. Here a
session says what it wants now; a job that no session wants is asked to stop, and so is one whose page has gone away.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

PATIENCE_SECONDS = 6.0  # a page that waits shows a sign of life several times a second
SETUP = "setup"  # who wants what is computed before the first visitor asks
RESULTS_LIMIT = 64
BYTES_LIMIT = 600 * 2**20  # a trace with the maps of one layer is 12 MB at 512 tokens and 160 MB at 2048


PARTIAL_LIMIT = 16  # of stopped computations, whose beginnings stay in sight


class Stopped(Exception):
    """Raised inside a computation that is no longer wanted."""


@dataclass(frozen=True)
class Result:
    """A result for the worker to keep: it must say how large it is."""

    value: Any
    bytes: int = 10_000


class Job:
    """One computation: its progress, its end, its result or its error."""

    def __init__(self, key: Hashable, compute: Callable[[Job], Any]):
        self.key, self.compute = key, compute
        self.owners: set[str] = set()
        self.done = threading.Event()
        self.stop = threading.Event()
        self.result: Any = None
        self.partial: Any = None  # what is there already, set by the computation
        self.error: Exception | None = None
        self.message, self.share = "Waiting for the model", 0.0
        self.seen_at = time.monotonic()
        self.stamp: Any = None  # of a result that an earlier process left on disk

    def tell(self, message: str, share: float) -> None:
        """Called by the computation: what it does, and how far it is (0–1)."""
        self.message, self.share = message, min(max(share, 0.0), 1.0)

    def report(self, message: str, share: float) -> None:
        """The same at a point where the computation may end: raises Stopped when nobody waits."""
        self.tell(message, share)
        if self.is_unwanted():
            raise Stopped

    def is_unwanted(self) -> bool:
        return self.stop.is_set() or time.monotonic() - self.seen_at > PATIENCE_SECONDS

    def seen(self) -> None:
        """A sign of life from a page that waits for this job, whether it runs already or not."""
        self.seen_at = time.monotonic()

    def wait(self, seconds: float) -> bool:
        """Whether it ended within that time."""
        self.seen()
        return self.done.wait(seconds)


class Disk(Protocol):
    """Where results outlive the process."""

    def get(self, key: Any) -> tuple[Any, Any] | None:
        """The result and its stamp, or None."""

    def put(self, key: Any, result: Any, *, is_setup: bool) -> None:
        """Keep a result."""


class Worker:
    """Runs jobs one after another on one thread (torch uses all cores by itself) and keeps the latest results."""

    def __init__(self, bytes_of: Callable[[Any], int] = lambda result: 0, disk: Disk | None = None) -> None:
        self.lock = threading.Lock()
        self.executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kvviz")
        self.jobs: dict[Hashable, Job] = {}
        self.running: Job | None = None
        self.results: OrderedDict[Hashable, Any] = OrderedDict()
        self.stamps: dict[Hashable, Any] = {}  # of those results that came from the disk
        self.partials: OrderedDict[Hashable, Any] = OrderedDict()  # of those that were stopped
        self.bytes_of, self.disk = bytes_of, disk
        self.computed = 0  # how many results were really computed; a repeated setting adds none

    def result(self, key: Hashable) -> Any | None:
        """A kept result, or None."""
        with self.lock:
            if key in self.results:
                self.results.move_to_end(key)
            return self.results.get(key)

    def partial(self, key: Hashable) -> Any | None:
        """What a computation that runs, or was stopped, has found so far; None if nothing."""
        with self.lock:
            job = self.jobs.get(key)
            return self.partials.get(key) if job is None or job.partial is None else job.partial

    def want(self, owner: str, wanted: Iterable[tuple[Hashable, Callable[[Job], Any]]]) -> list[Job]:
        """The jobs for what this owner wants now; what it wanted before and nobody else wants is stopped."""
        with self.lock:
            jobs = [self.job(key, compute) for key, compute in wanted]
            for job in jobs:
                job.owners.add(owner)
                job.seen()
            for job in list(self.jobs.values()):
                if job not in jobs:
                    job.owners.discard(owner)
                    if not job.owners:
                        job.stop.set()
            return jobs

    def job(self, key: Hashable, compute: Callable[[Job], Any]) -> Job:
        running = self.jobs.get(key)
        if running is not None and not running.is_unwanted():
            return running
        job = Job(key, compute)
        if key in self.results or self.fetch(key):
            self.results.move_to_end(key)
            job.result, job.stamp = self.results[key], self.stamps.get(key)
            job.done.set()
            return job
        self.jobs[key] = job
        self.executor.submit(self.run, job)
        return job

    def fetch(self, key: Hashable) -> bool:
        """Take a result from the disk, if it is there."""
        found = self.disk.get(key) if self.disk else None
        if found is not None:
            self.results[key], self.stamps[key] = found
            self.shrink()
        return found is not None

    def run(self, job: Job) -> None:
        self.running = job
        try:
            job.report("Starting", 0.0)
            job.result = job.compute(job)
            self.keep(job)
        except Exception as error:
            job.error = error
        finally:
            self.running = None
            with self.lock:
                if self.jobs.get(job.key) is job:
                    del self.jobs[job.key]
                self.keep_partial(job)
            job.done.set()
        if self.disk and job.error is None:  # after the page has its result
            self.disk.put(job.key, job.result, is_setup=job.owners == {SETUP})

    def keep_partial(self, job: Job) -> None:
        """What a stopped computation had found stays until it is computed after all, or others push it out."""
        if job.error is None:
            self.partials.pop(job.key, None)
        elif job.partial is not None:
            self.partials[job.key] = job.partial
            while len(self.partials) > PARTIAL_LIMIT:
                self.partials.popitem(last=False)

    def keep(self, job: Job) -> None:
        """Add the result."""
        with self.lock:
            self.results[job.key] = job.result
            self.computed += 1
            self.shrink()

    def shrink(self) -> None:
        """The results longest unused go when there are too many or they are too large together."""
        sizes = {key: self.bytes_of(result) for key, result in self.results.items()}
        while len(sizes) > 1 and (len(sizes) > RESULTS_LIMIT or sum(sizes.values()) > BYTES_LIMIT):
            oldest, _ = self.results.popitem(last=False)
            self.stamps.pop(oldest, None)
            del sizes[oldest]

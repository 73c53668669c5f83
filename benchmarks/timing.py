"""Timing as ratios: the contestants take turns, so that a slow minute of the machine hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def take_turns(contestants: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every contestant in every round, after one round that does not count."""
    for work in contestants.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, work in contestants.items():
            times[name].append(seconds_of(work))
    return times

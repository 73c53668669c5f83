"""``python -m benchmarks.long_text``: memory and time per token of a bounded policy on a long text."""

from __future__ import annotations

import resource
import statistics
import sys
import time

from benchmarks.material import loaded, text_ids
from kvviz.experiment import parse_setup
from kvviz.replay import replay

TOKENS, RUNS = 4096, 3
POLICIES = ("window:budget=256", "streaming:budget=256,sinks=4", "h2o:budget=256,recent=128")


def peak_mib() -> float:
    """Largest resident memory of this process so far (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def quarters(policy: str) -> float:
    """Time of the last quarter of the text by that of the second: the median of some runs."""
    return statistics.median(one_run(policy) for _ in range(RUNS))


def one_run(policy: str) -> float:
    marks = [time.perf_counter()]
    ids, setup = text_ids(TOKENS), parse_setup({"policy": policy})
    replay(loaded().model, ids, setup, progress=lambda _: marks.append(time.perf_counter()))
    quarter = (len(marks) - 1) // 4
    return (marks[-1] - marks[3 * quarter]) / (marks[2 * quarter] - marks[quarter])


def main() -> int:
    model, ids = loaded().model, text_ids(TOKENS)
    replay(model, ids[:512], parse_setup({"policy": POLICIES[0]}))
    before = peak_mib()
    print(f"T = {TOKENS}; wanted: at most 1024 MiB more than a run of 512 tokens, last by second quarter at most 1.1")
    for policy in POLICIES:
        last_by_second = quarters(policy)
        print(f"  {policy:32} {peak_mib() - before:6.0f} MiB more   quarters {last_by_second:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m benchmarks.long_text``: memory and time per token of a bounded policy on a long text."""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from benchmarks.material import loaded, text_ids
from kvviz.choices.setup import parse_setup
from kvviz.run.replay import BLOCK, replay

TOKENS, RUNS = 4096, 3
BLOCKS = TOKENS // BLOCK
POLICIES = ("window:budget=256", "streaming:budget=256,sinks=4", "h2o:budget=256,recent=128")


def peak_mib() -> float:
    """Largest resident memory of this process so far (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def quarters(policy: str) -> float:
    """Time of a block in the last quarter of the text by that of one in the second: medians over some runs."""
    seconds = np.array([block_seconds(policy) for _ in range(RUNS)])
    second, last = (
        np.median(seconds[:, part]) for part in (slice(BLOCKS // 4, BLOCKS // 2), slice(-BLOCKS // 4, None))
    )
    return float(last / second)


def block_seconds(policy: str) -> list[float]:
    """How long each of the blocks of one run takes."""
    ends = [time.perf_counter()]

    def progress(share: float) -> None:
        if share * BLOCKS >= len(ends):
            ends.append(time.perf_counter())

    replay(loaded().model, text_ids(TOKENS), parse_setup({"policy": policy}), progress=progress)
    return np.diff(ends).tolist()


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

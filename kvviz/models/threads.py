"""Several computations side by side, one core each.

Splitting one product of 256 rows over the cores waits at every step for the slowest of them; giving each core a
gradient of its own does not (30 depths, 256 tokens, two cores: 9.7 instead of 11.9 seconds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


class CorePool:
    """A context in which ``map`` works on as many items at once as torch would use cores; on a GPU one by one."""

    def __init__(self, device: torch.device):
        self.cores = torch.get_num_threads() if device.type == "cpu" else 1

    def __enter__(self) -> CorePool:
        self.pool = ThreadPoolExecutor(self.cores, initializer=torch.set_num_threads, initargs=(1,))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """The results in the order of the items; one item alone has all cores."""
        if self.cores == 1 or len(items) == 1:
            yield from map(function, items)
            return
        torch.set_num_threads(1)
        try:
            yield from self.pool.map(function, items)
        finally:  # the number of torch is one for the whole process
            torch.set_num_threads(self.cores)


@contextmanager
def one_core() -> Iterator[None]:
    """Torch stays on the calling thread: waking the others for products of a few rows takes longer than the products.

    With torch's OpenMP the number belongs to each thread, so another run's products stay shared out.
    """
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(cores)

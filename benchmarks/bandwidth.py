"""How fast this machine reads memory: the limit of writing one token at a time, which reads every weight once."""

from __future__ import annotations

from collections.abc import Callable

import torch


def reading(count: int) -> Callable[[], object]:
    """Reads that many bytes of memory on all cores, by a sum; more of them than any processor keeps near."""
    numbers = torch.ones(count // 4, dtype=torch.float32)
    return numbers.sum

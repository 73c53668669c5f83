"""How fast this machine reads memory: the limit of writing one token at a time, which reads every weight once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from transformers import PreTrainedModel


def weight_bytes(model: PreTrainedModel) -> int:
    """Bytes of all parameters, those that share memory once."""
    return sum({part.data_ptr(): part.nbytes for part in model.parameters()}.values())


def reading(count: int) -> Callable[[], object]:
    """Reads that many bytes of memory on all cores, by a sum; more of them than any processor keeps near."""
    numbers = torch.ones(count // 4, dtype=torch.float32)
    return numbers.sum

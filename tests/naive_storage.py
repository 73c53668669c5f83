"""Quantised storage a second time: lists of entries, one channel at a time, no code shared with kvviz."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests.naive_attention import Entry


def rounded(numbers: list[float], bits: int) -> list[float]:
    """What is left of one group of numbers after coding."""
    low, high = min(numbers), max(numbers)
    step = (high - low) / (2**bits - 1)
    return [low + (round((x - low) / step) if step else 0) * step for x in numbers]


def quantised(bits: int, group: int, residual: int) -> Callable[[list[Entry]], None]:
    """What happens to the entries of one head after a step."""

    def store(entries: list[Entry]) -> None:
        waiting = [e for e in entries if not e.key_is_coded]
        if len(waiting) == residual:
            for start in range(0, residual, group):
                code_block(waiting[start : start + group], bits)
        for entry in [e for e in entries if not e.value_is_coded][:-residual]:
            entry.value, entry.value_is_coded = coded_value(entry.value, bits, group), True

    return store


def code_block(block: list[Entry], bits: int) -> None:
    keys = torch.stack([e.key for e in block])
    for channel in range(keys.shape[1]):
        keys[:, channel] = torch.tensor(rounded(keys[:, channel].tolist(), bits), dtype=keys.dtype)
    for entry, key in zip(block, keys, strict=True):
        entry.key, entry.key_is_coded = key, True


def coded_value(value: Tensor, bits: int, group: int) -> Tensor:
    parts = [rounded(value[start : start + group].tolist(), bits) for start in range(0, len(value), group)]
    return torch.tensor([x for part in parts for x in part], dtype=value.dtype)

"""The same model for a while with other numbers: another number format, or slightly other weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

RANK = 8  # of the change that stands for an adapter


@contextmanager
def in_format(model: PreTrainedModel, dtype: torch.dtype) -> Iterator[None]:
    """Inside, the model's weights are rounded to ``dtype`` and it computes in it; afterwards it is as it was.

    Buffers such as rotary frequencies keep their format, as they do when a model is loaded in another one.
    """
    before = [(weight, weight.data) for weight in model.parameters()]
    try:
        for weight, data in before:
            weight.data = data.to(dtype)
        yield
    finally:
        restore(before)


@contextmanager
def with_adapter(model: PreTrainedModel, strength: float, seed: int = 0) -> Iterator[None]:
    """Inside, every matrix of every attention has a change of rank 8 added, as an adapter (LoRA) adds one.

    Its Frobenius norm is ``strength`` times that of the matrix; the directions are random, from ``seed``.
    """
    before = [(weight, weight.data) for weight in attention_matrices(model)]
    generator = torch.Generator().manual_seed(seed)
    try:
        for weight, data in before:
            weight.data = data + strength * low_rank(data, generator)
        yield
    finally:
        restore(before)


def restore(before: list[tuple[nn.Parameter, Tensor]]) -> None:
    for weight, data in before:
        weight.data = data


def attention_matrices(model: PreTrainedModel) -> list[nn.Parameter]:
    """The matrices of those modules that know which layer they attend in."""
    owners = [module for module in model.modules() if hasattr(module, "layer_idx")]
    found = {id(w): w for owner in owners for name, w in owner.named_parameters() if w.ndim == 2 and "mlp" not in name}
    return list(found.values())


def low_rank(matrix: Tensor, generator: torch.Generator) -> Tensor:
    """A random change of rank 8 with the norm of the matrix."""
    rows, columns = matrix.shape
    change = torch.randn(rows, RANK, generator=generator) @ torch.randn(RANK, columns, generator=generator)
    change *= matrix.float().norm().cpu() / change.norm()
    return change.to(matrix)

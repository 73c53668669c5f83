"""Linear layers whose backward pays only for rows that have a gradient.

A gradient that starts at one token reaches a window of them one layer below, and all of them only some layers further
down. Until then most rows are exactly zero, and so is their product with the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode


class SparseLinear(torch.autograd.Function):
    """``F.linear`` with frozen weights; rows of zeros are left out of the backward product."""

    @staticmethod
    def forward(context: Any, given: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        context.save_for_backward(weight)
        return F.linear(given, weight, bias)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (weight,) = context.saved_tensors
        (gradient,) = gradients
        rows = gradient.flatten(0, -2)
        # what ``any`` says, five times faster: a row of zeros has no largest and no smallest value but 0
        filled = ((rows.amax(-1) != 0) | (rows.amin(-1) != 0)).nonzero()[:, 0]
        if len(filled) > 0.8 * len(rows):  # picking rows costs a copy
            return gradient @ weight, None, None
        result = rows.new_zeros(len(rows), weight.shape[1])
        result[filled] = rows[filled] @ weight
        return result.view(*gradient.shape[:-1], -1), None, None


class SparseLinearMode(TorchFunctionMode):
    """Inside it every linear layer with frozen weights is a ``SparseLinear``."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is F.linear and not kwargs and not args[1].requires_grad and args[0].requires_grad:
            return SparseLinear.apply(*args, *[None] * (3 - len(args)))
        return function(*args, **kwargs)

"""The product of one row with a weight matrix, shared out over the cores.

Writing one token at a time reads every weight for a single row. torch's linear does that on one core, at half the rate
at which the weights can be read; as a batch of as many parts of the weight as there are threads, the cores share it.
The parts are views: nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def linear_layers(model: nn.Module) -> list[nn.Linear]:
    """The layers whose single rows can be shared out: plain linear ones in float32 on the CPU."""
    plain = (module for module in model.modules() if type(module) is nn.Linear)
    return [module for module in plain if module.weight.device.type == "cpu" and module.weight.dtype == torch.float32]


@contextmanager
def rows_shared_out(layers: list[nn.Linear]) -> Iterator[None]:
    """Inside, these linear layers share out a single row; with more rows they compute as ever."""
    for layer in layers:
        vars(layer)["forward"] = partial(linear, layer)
    try:
        yield
    finally:
        for layer in layers:
            vars(layer).pop("forward", None)  # another thread's run may have been here before


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """x Wᵀ + b, as ``layer`` itself computes it."""
    weight, parts = layer.weight, torch.get_num_threads()
    if x.numel() != x.shape[-1] or parts == 1 or weight.shape[0] % parts:
        return F.linear(x, weight, layer.bias)
    pieces = weight.view(parts, -1, weight.shape[1]).transpose(1, 2)
    product = torch.bmm(x.reshape(1, 1, -1).expand(parts, 1, -1), pieces).view(*x.shape[:-1], -1)
    return product if layer.bias is None else product + layer.bias

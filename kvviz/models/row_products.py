"""The product of one row with a weight matrix, at the rate at which the weights can be read.

Writing one token at a time reads every weight for a single row. torch's linear does that on one core, at half the rate
at which that core can read; numpy's einsum reads twice as fast. With many cores, a batch of as many parts of the weight
as there are threads shares the row out. Both read the weights where they lie: nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kvviz.models.threads import one_core

Forward = Callable[[Tensor], Tensor]

# with fewer, waking the others for every product takes longer than they save (two cores: 31 ms a token against 26)
CORES_TO_SHARE = 4


class RowProducts:
    """The plain linear layers of a model whose single rows can be computed faster: those in float32 on the CPU."""

    def __init__(self, model: nn.Module) -> None:
        self.parts = torch.get_num_threads()
        self.forwards = [(vars(layer), self.forward(layer)) for layer in quick_layers(model)]

    @property
    def on_one_core(self) -> bool:
        return bool(self.forwards) and self.parts < CORES_TO_SHARE

    def forward(self, layer: nn.Linear) -> Forward:
        return by_einsum(layer) if self.parts < CORES_TO_SHARE else in_parts(layer, self.parts)

    @contextmanager
    def quick(self) -> Iterator[None]:
        """Inside, these layers compute a single row faster; with more rows they compute as ever."""
        for attributes, forward in self.forwards:
            attributes["forward"] = forward
        try:  # where one core multiplies, what lies between the products is too small to share out
            with one_core() if self.on_one_core else nullcontext():
                yield
        finally:
            for attributes, _ in self.forwards:
                attributes.pop("forward", None)  # another thread's run may have been here before


def quick_layers(model: nn.Module) -> list[nn.Linear]:
    plain = (module for module in model.modules() if type(module) is nn.Linear)
    found = [layer for layer in plain if layer.weight.device.type == "cpu" and layer.weight.dtype == torch.float32]
    return [layer for layer in found if layer.weight.is_contiguous()]


def by_einsum(layer: nn.Linear) -> Forward:
    """x Wᵀ + b on one core."""
    weight, bias = layer.weight.detach(), layer.bias
    matrix, width = weight.numpy(), weight.shape[1]

    def forward(x: Tensor) -> Tensor:
        if x.numel() != width:
            return F.linear(x, weight, bias)
        row = x.numpy()
        product = np.einsum("oi,i->o", matrix, row.reshape(-1)).reshape(*row.shape[:-1], -1)
        return torch.from_numpy(product) if bias is None else torch.from_numpy(product) + bias

    return forward


def in_parts(layer: nn.Linear, parts: int) -> Forward:
    """x Wᵀ + b, shared out among as many cores as there are parts."""
    weight, bias = layer.weight.detach(), layer.bias
    if len(weight) % parts:
        return lambda x: F.linear(x, weight, bias)
    width, pieces = weight.shape[1], weight.view(parts, -1, weight.shape[1]).transpose(1, 2)

    def forward(x: Tensor) -> Tensor:
        if x.numel() != width:
            return F.linear(x, weight, bias)
        product = torch.bmm(x.reshape(1, 1, -1).expand(parts, 1, -1), pieces).view(*x.shape[:-1], -1)
        return product if bias is None else product + bias

    return forward

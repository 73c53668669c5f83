"""Single rows shared out over the cores are the products that torch computes, and nothing of it stays behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kvviz.models.row_products import linear_layers, rows_shared_out
from tests.tiny import tiny


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outputs", [64, 63])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_product_is_the_same(outputs: int, rows: int, bias: bool) -> None:
    torch.manual_seed(0)
    layer, x = nn.Linear(48, outputs, bias=bias), torch.randn(1, rows, 48)
    before, threads = layer(x), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.inference_mode(), rows_shared_out([layer]):
            inside = layer(x)
    finally:
        torch.set_num_threads(threads)
    assert inside.shape == before.shape and torch.allclose(inside, before, atol=1e-6)
    assert "forward" not in vars(layer) and torch.equal(layer(x), before)


def test_only_plain_layers_in_float32_take_part() -> None:
    class Own(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(2, 2), Own(2, 2), nn.Linear(2, 2).double(), nn.Linear(2, 2).bfloat16())
    assert linear_layers(model) == [model[0]]
    assert linear_layers(tiny("llama")) == []  # float64

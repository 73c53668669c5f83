"""Single rows computed faster are the products that torch computes, and nothing of it stays behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kvviz.models.row_products import RowProducts, quick_layers
from tests.tiny import tiny


@pytest.fixture
def with_threads() -> object:
    threads = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(threads)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outputs", [64, 63])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("threads", [2, 4])  # on one core by numpy, shared out by torch
def test_the_product_is_the_same(with_threads: object, threads: int, outputs: int, rows: int, bias: bool) -> None:
    torch.manual_seed(0)
    layer, x = nn.Linear(48, outputs, bias=bias).requires_grad_(False), torch.randn(1, rows, 48)
    before = layer(x)
    with_threads(threads)  # type: ignore[operator]
    products = RowProducts(layer)
    assert products.on_one_core == (threads == 2)
    with torch.inference_mode(), products.quick():
        inside = layer(x)
        assert torch.get_num_threads() == (1 if threads == 2 else 4)
    assert torch.get_num_threads() == threads
    assert inside.shape == before.shape and torch.allclose(inside, before, atol=1e-6)
    assert "forward" not in vars(layer) and torch.equal(layer(x), before)


def test_only_plain_layers_in_float32_take_part() -> None:
    class Own(nn.Linear):
        pass

    turned = nn.Linear(3, 3)
    turned.weight.data = turned.weight.data.T
    model = nn.Sequential(nn.Linear(2, 2), Own(2, 2), nn.Linear(2, 2).double(), nn.Linear(2, 2).bfloat16(), turned)
    assert quick_layers(model) == [model[0]]
    products = RowProducts(tiny("llama"))  # float64
    with products.quick():
        assert not products.forwards and not products.on_one_core

"""Linear layers that skip rows without a gradient give the same gradients as the others."""

import pytest
import torch
from torch import nn

from kvviz.analysis.sparse_linear import SparseLinear, SparseLinearMode


@pytest.mark.parametrize("filled", [[], [4], [0, 2], list(range(5))])
@pytest.mark.parametrize("bias", [True, False])
def test_gradients_are_those_of_a_plain_layer(filled, bias):
    torch.manual_seed(0)
    layer = nn.Linear(3, 4, bias=bias).double().requires_grad_(False)
    given, gradient = torch.randn(1, 5, 3).double().requires_grad_(), torch.zeros(1, 5, 4).double()
    gradient[:, filled] = torch.randn(1, len(filled), 4).double()
    (plain,) = torch.autograd.grad(layer(given), given, gradient)
    with SparseLinearMode():
        output = layer(given)
    assert type(output.grad_fn).__name__ == "SparseLinearBackward"
    assert torch.equal(output, layer(given))
    assert torch.allclose(torch.autograd.grad(output, given, gradient)[0], plain, atol=1e-15)


def test_weights_that_learn_are_left_alone():
    layer, given = nn.Linear(3, 4), torch.randn(2, 3).requires_grad_()
    with SparseLinearMode():
        output = layer(given)
    assert SparseLinear.__name__ not in type(output.grad_fn).__name__
    output.sum().backward()
    assert layer.weight.grad is not None

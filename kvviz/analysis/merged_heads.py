"""What if grouped queries were switched on without training? The KV heads of a model averaged into one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

NO_PROJECTIONS = "The KV heads of this model cannot be merged here: its layers have no k_proj and v_proj of their own."


def merge_kv_heads(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of the model with one KV head, the mean of those it had; the model itself stays as it is.

    The start that Ainslie et al. (GQA, 2023) give before training goes on; without training it is the whole damage.
    ValueError where the layers are built otherwise.
    """
    merged = deepcopy(model)
    layers, config = layers_of(merged), merged.config.get_text_config(decoder=True)
    heads = config.num_key_value_heads
    for layer in layers:
        for name in ("k_proj", "v_proj"):
            average(getattr(layer, name, None), heads)
        layer.num_key_value_groups = config.num_attention_heads
    config.num_key_value_heads = 1
    return merged


def layers_of(model: PreTrainedModel) -> list[Any]:
    """The attention module of every layer."""
    found = [
        module for module in model.modules() if hasattr(module, "k_proj") and hasattr(module, "num_key_value_groups")
    ]
    if not found:
        raise ValueError(NO_PROJECTIONS)
    return found


def average(projection: Any, heads: int) -> None:
    """Replace a projection to ``heads`` heads by the mean of them, (heads · D, hidden) → (D, hidden)."""
    if not isinstance(projection, torch.nn.Linear) or projection.out_features % heads:
        raise ValueError(NO_PROJECTIONS)
    projection.weight = mean_of(projection.weight, heads)
    if projection.bias is not None:
        projection.bias = mean_of(projection.bias, heads)
    projection.out_features //= heads


def mean_of(weights: Tensor, heads: int) -> torch.nn.Parameter:
    return torch.nn.Parameter(weights.unflatten(0, (heads, -1)).mean(0), requires_grad=False)

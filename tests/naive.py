"""Second implementations, slow and separate on purpose: plain Python sets, the stock model and a 4-D mask."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedModel


def window_kept(step: int, budget: int) -> list[int]:
    return [j for j in range(step + 1) if j > step - budget]


def streaming_kept(step: int, budget: int, sinks: int) -> list[int]:
    recent = budget - sinks
    return [j for j in range(step + 1) if j < sinks or j > step - recent]


def mask_from_kept(kept: list[list[int]], dtype: torch.dtype) -> Tensor:
    """(1, 1, T, T) additive: 0 where row t may see j, the lowest number elsewhere."""
    tokens = len(kept)
    mask = torch.full((tokens, tokens), torch.finfo(dtype).min, dtype=dtype)
    for row, positions in enumerate(kept):
        mask[row, positions] = 0
    return mask[None, None]


def masked_logits(model: PreTrainedModel, ids: Tensor, kept: list[list[int]]) -> Tensor:
    """Full attention of the stock model under the mask that the kept sets amount to, (T, vocabulary)."""
    mask = mask_from_kept(kept, model.dtype)
    with torch.inference_mode():
        return model(input_ids=ids[None], attention_mask=mask, use_cache=False).logits[0]

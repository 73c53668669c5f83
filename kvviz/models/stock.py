"""The stock model, as transformers runs it without kvviz: what every run is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from transformers import PreTrainedModel


@contextmanager
def stock_attention(model: PreTrainedModel) -> Iterator[None]:
    """Inside, the model uses its own attention: eager knows all that a model may ask for, sdpa does not."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


@contextmanager
def in_float32(model: PreTrainedModel) -> Iterator[None]:
    """Inside, a model in half precision computes with the same weights in float32; afterwards it is as it was.

    Rounding to half precision moves log-probabilities by nats, so that nothing could be told from a comparison.
    """
    tensors = [*model.parameters(), *model.buffers()]
    halves = [(tensor, tensor.data) for tensor in tensors if tensor.dtype in (torch.bfloat16, torch.float16)]
    try:
        for tensor, half in halves:
            tensor.data = half.float()
        yield
    finally:
        for tensor, half in halves:
            tensor.data = half


def stock_logits(model: PreTrainedModel, ids: Tensor, *, window: int | None = None) -> Tensor:
    """Logits (T, vocabulary) of tokens (T,) in one forward without a cache, at the positions the model gives them.

    With a ``window`` every query sees its latest keys only, as many as the window, its own among them; it must not be
    larger than a window of the model's own, for it is the whole mask of every layer. Positions then count from 0, for
    some models (OPT) would read them off the mask.
    """
    more = {}
    if window is not None:
        more["attention_mask"] = window_mask(len(ids), window, model.dtype, model.device)
        more["position_ids"] = torch.arange(len(ids), device=model.device)[None]
    with stock_attention(model), torch.inference_mode():
        return model(input_ids=ids[None], use_cache=False, **more).logits[0]


def window_mask(tokens: int, window: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(1, 1, T, T), additive: 0 where the query of a row sees the key of a column, the lowest number elsewhere."""
    age = torch.arange(tokens, device=device)[:, None] - torch.arange(tokens, device=device)
    hidden = torch.full((tokens, tokens), torch.finfo(dtype).min, dtype=dtype, device=device)
    return hidden.masked_fill((age >= 0) & (age < window), 0)[None, None]

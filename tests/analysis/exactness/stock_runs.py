"""The same questions asked of the stock model: its own attention and cache, masks and positions by hand."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from tests.tiny import stock


@cache
@torch.inference_mode(False)
def double(name: str) -> PreTrainedModel:
    """The stock model with sdpa, whose softmax stays in float64; that of eager attention is float32 in any format."""
    model = deepcopy(stock(name))
    model.set_attn_implementation("sdpa")
    return model


def stock_read(
    model: PreTrainedModel,
    ids: Tensor,
    *,
    held_before: DynamicCache | None = None,
    positions: Tensor | None = None,
    visible: Tensor | None = None,
) -> tuple[Tensor, DynamicCache]:
    """Logits (R, vocabulary) and the cache; ``visible`` (R, K) bool is handed over as an additive mask."""
    # without a config the layers of this cache keep everything, also where the model itself slides
    entries = DynamicCache() if held_before is None else held_before
    held = entries.get_seq_length()
    places = torch.arange(held, held + len(ids)) if positions is None else positions
    if visible is None:
        visible = torch.ones(len(ids), held + len(ids), dtype=torch.bool).tril(held)
    mask = torch.zeros(visible.shape, dtype=model.dtype).masked_fill(~visible, torch.finfo(model.dtype).min)
    with torch.inference_mode():
        logits = model(
            input_ids=ids[None],
            position_ids=places[None],
            attention_mask=mask[None, None],
            cache=entries,
            use_cache=True,
        ).logits[0]
    return logits, entries


def stock_reuse(
    model: PreTrainedModel, prefix: Tensor, rest: Tensor, change: Callable[[DynamicCache], None] | None = None, **more
) -> Tensor:
    """The rest read from the entries of a prefix, which ``change`` may alter in between."""
    _, entries = stock_read(model, prefix)
    if change is not None:
        with torch.inference_mode():
            change(entries)
    return stock_read(model, rest, held_before=entries, **more)[0]


def row_gaps(one: Tensor, other: Tensor) -> Tensor:
    """The largest difference in log-probability, row by row."""
    gaps = [(a.log_softmax(0) - b.log_softmax(0)).abs().max() for a, b in zip(one, other, strict=True)]
    return torch.stack(gaps)

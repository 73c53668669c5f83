"""The stock model, without kvviz: one plain forward, and stepping one token at a time."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel


def forward(model: PreTrainedModel, ids: Tensor, mask: Tensor | None = None) -> Tensor:
    """Logits (T, vocabulary) of one sdpa forward over the whole text, under a mask (T, T) of what is seen if given."""
    model.set_attn_implementation("sdpa")
    with torch.inference_mode():
        return model(input_ids=ids[None], use_cache=False, attention_mask=whole(mask)).logits[0]


def whole(mask: Tensor | None) -> Tensor | None:
    """With axes for the sequence and the heads, as the model takes it."""
    return None if mask is None else mask[None, None]


def steps(model: PreTrainedModel, ids: Tensor) -> Tensor:
    """Logits of one token at a time with a DynamicCache and sdpa."""
    return torch.cat([rows for _, rows in chunks(model, ids, 1)])


def chunks(
    model: PreTrainedModel, ids: Tensor, size: int, last_only: bool = False, mask: Tensor | None = None
) -> Iterator[tuple[int, Tensor]]:
    """Where each chunk begins and its logits (R, vocabulary), with a DynamicCache; a mask (T, T) says what is seen."""
    model.set_attn_implementation("sdpa")
    past, start = DynamicCache(config=model.config), 0
    for part in ids.split(size):
        end = start + len(part)
        where = torch.arange(start, end, device=ids.device)[None]
        seen = None if mask is None else whole(mask[start:end, :end])
        with torch.inference_mode():
            output = model(
                input_ids=part[None],
                position_ids=where,
                attention_mask=seen,
                cache=past,
                use_cache=True,
                logits_to_keep=int(last_only),
            )
        yield start, output.logits[0]
        start = end


def write(model: PreTrainedModel, prompt: Tensor, count: int) -> list[int]:
    """Greedy continuation of a prompt, as generate does it: prompt in one forward, then one token at a time."""
    model.set_attn_implementation("sdpa")
    past = DynamicCache(config=model.config)
    with torch.inference_mode():
        logits = model(input_ids=prompt[None], cache=past, use_cache=True, logits_to_keep=1).logits[0, -1]
        chosen = [int(logits.argmax())]
        for position in range(len(prompt), len(prompt) + count - 1):
            where = torch.tensor([[position]], device=prompt.device)
            token = torch.tensor([[chosen[-1]]], device=prompt.device)
            logits = model(input_ids=token, position_ids=where, cache=past, use_cache=True).logits[0, -1]
            chosen.append(int(logits.argmax()))
    return chosen

"""The stock model, without kvviz: one plain forward, and stepping one token at a time."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel


def forward(model: PreTrainedModel, ids: Tensor) -> Tensor:
    """Logits (T, vocabulary) of one sdpa forward over the whole text."""
    model.set_attn_implementation("sdpa")
    with torch.inference_mode():
        return model(input_ids=ids[None], use_cache=False).logits[0]


def steps(model: PreTrainedModel, ids: Tensor, start: int = 0, past: DynamicCache | None = None) -> Tensor:
    """Logits of one token at a time with a DynamicCache and sdpa."""
    model.set_attn_implementation("sdpa")
    past = past or DynamicCache(config=model.config)
    rows = []
    with torch.inference_mode():
        for position, token in enumerate(ids, start):
            where = torch.tensor([[position]], device=ids.device)
            rows.append(model(input_ids=token.view(1, 1), position_ids=where, cache=past, use_cache=True).logits[0])
    return torch.cat(rows)


def chunks(model: PreTrainedModel, ids: Tensor, size: int, last_only: bool = False) -> Iterator[tuple[int, Tensor]]:
    """Where each chunk of the text begins and its logits (R, vocabulary), with a DynamicCache and sdpa."""
    model.set_attn_implementation("sdpa")
    past, start = DynamicCache(config=model.config), 0
    for part in ids.split(size):
        where = torch.arange(start, start + len(part), device=ids.device)[None]
        with torch.inference_mode():
            output = model(
                input_ids=part[None], position_ids=where, cache=past, use_cache=True, logits_to_keep=int(last_only)
            )
        yield start, output.logits[0]
        start += len(part)


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

"""Slot positions by the stock model alone: every token is run at many positions at once, and what it leaves in the
cache there is put back at the position asked for. Nothing is rotated here, and nothing is known of any architecture."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

PLACES = 120  # positions at which every token is run, from 0 on; each step needs the last entry one place lower


def renumbered_logits(model: PreTrainedModel, ids: Tensor, budget: int, sinks: int) -> Tensor:
    """Logits (T, vocabulary) of streaming with the kept tokens at positions 0, 1, …, their newest being the query.

    A layer with a window of its own holds nothing from beyond it, and what that frees the policy fills again.
    """
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    places = torch.arange(PLACES)
    entries: dict[int, list[tuple[Tensor, Tensor]]] = {}  # of each token, layer by layer, at all places at once
    held: dict[int, list[int]] = defaultdict(list)  # of each layer
    rows = []
    for step, token in enumerate(ids):
        cache = DynamicCache(config=model.config)
        for layer, slots in enumerate(cache.layers):
            window = getattr(slots, "sliding_window", None) or step + 1
            held[layer] = [j for j in held[layer] if j > step - window]
            if len(held[layer]) == budget:
                held[layer].remove(next(j for j in held[layer] if j >= sinks))
            # what stands at rank r, seen from a query at place p, stands at place p − (how many are held) + r
            moved = [
                [part.roll(len(held[layer]) - rank, 0) for part in entries[j][layer]]
                for rank, j in enumerate(held[layer])
            ]
            if moved:
                cache.update(*(torch.cat(parts, 2) for parts in zip(*moved, strict=True)), layer)
            held[layer].append(step)
        with torch.inference_mode():
            tokens = token.expand(len(places), 1)
            logits = model(input_ids=tokens, position_ids=places[:, None], cache=cache, use_cache=True).logits
        entries[step] = [(layer.keys[:, :, -1:], layer.values[:, :, -1:]) for layer in cache.layers]
        rows.append(logits[-1, -1])
    model.set_attn_implementation(before)
    return torch.stack(rows)

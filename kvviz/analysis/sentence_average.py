"""Attention averaged over many short sentences: what a layer does whatever the words are.

As in figure 2 of Xiao et al. (StreamingLLM, 2023), which averages over 256 sentences of 16 tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from kvviz.models.tokens import encode
from kvviz.run.progress import Cancelled

LENGTH, BATCH = 16, 16


def sentences_of(tokenizer: PreTrainedTokenizerBase, text: str, count: int, length: int = LENGTH) -> list[list[int]]:
    """The first ``length`` tokens of the first ``count`` sentences that have as many."""
    found: list[list[int]] = []
    for sentence in re.split(r"(?<=[.!?])\s+|\n\s*\n", text):
        ids = encode(tokenizer, " ".join(sentence.split()), length)
        if len(ids) == length:
            found.append(ids)
        if len(found) == count:
            break
    return found


def averaged_maps(
    model: PreTrainedModel,
    sentences: Sequence[Sequence[int]],
    *,
    progress: Callable[[float], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> NDArray[np.float32]:
    """Mean attention of every layer over all heads and sentences, (L, length, length); NaN above the diagonal.

    Computed by the stock model's eager attention, sentences in batches; they all have one length.
    """
    if not sentences:
        raise ValueError(f"No sentence of {LENGTH} tokens was found; give a longer text.")
    ids = torch.tensor(sentences, device=model.device)
    total: torch.Tensor | float = 0.0
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        for start in range(0, len(ids), BATCH):
            if is_cancelled is not None and is_cancelled():
                raise Cancelled
            part = ids[start : start + BATCH]
            with torch.inference_mode():
                maps = model(input_ids=part, output_attentions=True, use_cache=False).attentions
            total = total + torch.stack([weights.float().mean(1).sum(0) for weights in maps])
            if progress is not None:
                progress((start + len(part)) / len(ids))
    finally:
        model.set_attn_implementation(before)
    assert isinstance(total, torch.Tensor)
    mean: NDArray[np.float32] = (total / len(ids)).cpu().numpy()
    mean[:, ~np.tri(mean.shape[-1], dtype=bool)] = np.nan
    return mean

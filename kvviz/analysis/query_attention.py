"""Where one query looks, in every layer and head: one row of every map, without the maps.

The rows before it go through the fused kernel, which forms no weights; only the query's own block is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.choices.setup import Setup
from kvviz.run.progress import Watch
from kvviz.run.recorder import array
from kvviz.run.replay import BLOCK, checked_ids, open_pass


class RowRecorder:
    """Keeps the weights of the last row it is shown in each layer, (L, A, T); NaN = that key could not be seen."""

    def __init__(self, layers: int, query_heads: int, tokens: int) -> None:
        self.weights = np.full((layers, query_heads, tokens), np.nan, dtype=np.float32)

    def record(self, layer: int, weights: Tensor, positions: Tensor, visible: Tensor, queries: Tensor) -> None:
        """One layer's block: weights (A, R, K), positions (H, K), visible (H, R, K), queries (R,)."""
        group = len(weights) // len(positions)
        seen = visible[:, -1].repeat_interleave(group, 0)
        row = array(torch.where(seen, weights[:, -1], torch.nan))
        np.put_along_axis(self.weights[layer], array(positions.repeat_interleave(group, 0)), row, 1)

    def enter(self, layer: int, key: Tensor, value: Tensor, queries: Tensor) -> None:
        """New entries say nothing about the row."""


def query_weights(
    model: PreTrainedModel,
    token_ids: Sequence[int],
    setup: Setup,
    query: int,
    *,
    prompt_tokens: int,
    progress: Callable[[float], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> NDArray[np.float32]:
    """The attention weights of the token at position ``query``, (L, A, query + 1); NaN where a key cannot be seen.

    Raises ValueError for a query outside the text, and Cancelled when ``is_cancelled`` answers yes between blocks.
    """
    if not 0 <= query < len(token_ids):
        raise ValueError(f"There is no query {query}: the text has the positions 0–{len(token_ids) - 1}.")
    ids, watch = checked_ids(model, token_ids[: query + 1]), Watch(progress, is_cancelled)
    config = model.config.get_text_config(decoder=True)
    recorder = RowRecorder(config.num_hidden_layers, config.num_attention_heads, len(ids))
    run = open_pass(model, setup, prompt_tokens, None, len(ids))
    # a pass that reads every window anew needs nothing of what came before
    first = 0 if setup.policy.recomputes else query
    for start in range(0, first, BLOCK):
        watch.tell(start / len(ids))
        run.feed(ids[start : min(start + BLOCK, first)], last_only=True)
    watch.tell(first / len(ids))
    run.recorder = recorder
    run.feed(ids[first:], last_only=True)
    return recorder.weights

"""Takes the measures of every layer and head while the pass runs, and whole maps only where asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kvviz.measures.attention import FIRST, MEASURES, Rows, first_weights
from kvviz.measures.sinks import SINKS


class AttentionRecorder:
    """What a trace keeps of the attention: memory is O(L·A·T·FIRST) plus T² for each map.

    ``maps`` are (layer, query head); ValueError for one that the model does not have.
    """

    def __init__(
        self,
        layers: int,
        query_heads: int,
        tokens: int,
        *,
        sinks: int = SINKS,
        kv_heads: int | None = None,
        maps: Iterable[tuple[int, int]] = (),
    ) -> None:
        shape = (layers, query_heads, tokens)
        self.sinks = sinks
        # NaN stays where a query was never computed, as re-computation leaves some out
        self.measures = {name: np.full(shape, np.nan, dtype=np.float32) for name in MEASURES}
        self.received = np.zeros(shape, dtype=np.float32)
        self.first_weights = np.full((*shape, FIRST), np.nan, dtype=np.float32)
        self.key_norm, self.value_norm = np.full((2, layers, kv_heads or query_heads, tokens), np.nan, dtype=np.float32)
        self.maps: dict[tuple[int, int], NDArray[np.float32]] = {}
        for layer, head in maps:
            if not (0 <= layer < layers and 0 <= head < query_heads):
                raise ValueError(
                    f"There is no layer {layer}, head {head}: this model has layers 0–{layers - 1} and query heads "
                    f"0–{query_heads - 1}."
                )
            self.maps[layer, head] = np.full((tokens, tokens), np.nan, dtype=np.float32)

    def record(self, layer: int, weights: Tensor, positions: Tensor, visible: Tensor, queries: Tensor) -> None:
        """One layer's block: weights (A, R, K), positions (H, K), visible (H, R, K), queries (R,)."""
        group = len(weights) // len(positions)
        rows = slice(int(queries[0]), int(queries[-1]) + 1)
        places = positions.repeat_interleave(group, 0)  # (A, K)
        seen_rows = Rows(weights, places[:, None], queries, self.sinks)
        for name, measure in MEASURES.items():
            self.measures[name][layer, :, rows] = array(measure.rule(seen_rows))
        self.first_weights[layer, :, rows] = array(first_weights(weights, places, FIRST))
        np.put_along_axis(
            self.received[layer],
            array(places),
            np.take_along_axis(self.received[layer], array(places), 1) + array(weights.sum(1)),
            1,
        )
        for (map_layer, head), matrix in self.maps.items():
            if map_layer == layer:
                seen = visible[head // group]
                matrix[rows, array(places[head])] = array(torch.where(seen, weights[head], torch.nan))

    def enter(self, layer: int, key: Tensor, value: Tensor, queries: Tensor) -> None:
        """The new entries of one layer's block: key and value (H, R, D); a rotation does not change a key's length."""
        rows = slice(int(queries[0]), int(queries[-1]) + 1)
        self.key_norm[layer, :, rows] = array(key.norm(dim=-1))
        self.value_norm[layer, :, rows] = array(value.norm(dim=-1))

    def taken(self, tokens: int) -> dict[str, Any]:
        """The measures of the first ``tokens`` tokens, by the names of Trace's fields."""
        every = slice(None), slice(None), slice(tokens)
        return {
            "sink_tokens": self.sinks,
            "measures": {name: values[every] for name, values in self.measures.items()},
            "first_weights": self.first_weights[every],
            "received": self.received[every],
            "key_norm": self.key_norm[every],
            "value_norm": self.value_norm[every],
            "maps": {place: matrix[:tokens, :tokens] for place, matrix in self.maps.items()},
        }


def array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().float().cpu().numpy() if tensor.is_floating_point() else tensor.cpu().numpy()

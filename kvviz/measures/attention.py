"""What one row of attention weights says: a few numbers per query, and the recorder that takes them in the pass.

Weights (A, R, K) are shares of R queries over K slots; a row sums to 1 (to less with softmax off by one).
Positions broadcast against them as (A, 1, K); queries are (R,).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kvviz.measures.sinks import SINKS


def sink_mass(weights: Tensor, positions: Tensor, sinks: int) -> Tensor:
    """Share of each query's attention on the first ``sinks`` positions of the text: Σ_{j < s} w_j, (A, R)."""
    return (weights * (positions < sinks)).sum(-1)


def entropy(weights: Tensor) -> Tensor:
    """−Σ w_j ln w_j of each row in nats, (A, R): 0 when one slot gets all, ln K when all get the same."""
    return torch.special.entr(weights).sum(-1)


def mean_distance(weights: Tensor, positions: Tensor, queries: Tensor) -> Tensor:
    """Σ w_j (t − j) / Σ w_j of each row in positions, (A, R)."""
    distance = queries[:, None] - positions
    return (weights * distance).sum(-1) / weights.sum(-1)


def recent_mass(weights: Tensor, positions: Tensor, queries: Tensor, recent: int) -> Tensor:
    """Share of each query's attention on the latest ``recent`` positions, its own included, (A, R)."""
    return (weights * (positions > queries[:, None] - recent)).sum(-1)


def first_weights(weights: Tensor, positions: Tensor, first: int) -> Tensor:
    """The weight on each of the first ``first`` positions of the text, (A, R, first); 0 where it is not there.

    ``positions`` (A, K) ascend, so only the first slots can hold them.
    """
    is_there = positions[:, :first, None] == torch.arange(first, device=positions.device)
    return torch.bmm(weights[..., :first], is_there.to(weights.dtype))


MEASURES = ("sink_mass", "entropy", "mean_distance", "recent_mass", "received", "first_weights")
NORMS = ("key_norm", "value_norm")
RECENT = 16  # tokens that count as recent
FIRST = 8  # positions at the text's beginning whose weights are kept apart


class AttentionRecorder:
    """Takes the measures of every layer and head while the pass runs, and whole maps only where asked.

    Memory is O(L·A·T·FIRST) plus T² for each map.
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
        self.sink_mass = np.full(shape, np.nan, dtype=np.float32)
        self.entropy = np.full(shape, np.nan, dtype=np.float32)
        self.mean_distance = np.full(shape, np.nan, dtype=np.float32)
        self.recent_mass = np.full(shape, np.nan, dtype=np.float32)
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
        """One layer's block: weights (A, R, K), positions (H, K), visible (H or 1, R, K), queries (R,)."""
        group = len(weights) // len(positions)
        rows = slice(int(queries[0]), int(queries[-1]) + 1)
        places = positions.repeat_interleave(group, 0)  # (A, K)
        spots = places[:, None]
        self.sink_mass[layer, :, rows] = array(sink_mass(weights, spots, self.sinks))
        self.entropy[layer, :, rows] = array(entropy(weights))
        self.mean_distance[layer, :, rows] = array(mean_distance(weights, spots, queries))
        self.recent_mass[layer, :, rows] = array(recent_mass(weights, spots, queries, RECENT))
        self.first_weights[layer, :, rows] = array(first_weights(weights, places, FIRST))
        np.put_along_axis(
            self.received[layer],
            array(places),
            np.take_along_axis(self.received[layer], array(places), 1) + array(weights.sum(1)),
            1,
        )
        for (map_layer, head), matrix in self.maps.items():
            if map_layer == layer:
                seen = visible[head // group if len(visible) > 1 else 0]
                matrix[rows, array(places[head])] = array(torch.where(seen, weights[head], torch.nan))

    def enter(self, layer: int, key: Tensor, value: Tensor, queries: Tensor) -> None:
        """The new entries of one layer's block: key and value (H, R, D); a rotation does not change a key's length."""
        rows = slice(int(queries[0]), int(queries[-1]) + 1)
        self.key_norm[layer, :, rows] = array(key.norm(dim=-1))
        self.value_norm[layer, :, rows] = array(value.norm(dim=-1))

    def taken(self, tokens: int) -> dict[str, Any]:
        """The measures of the first ``tokens`` tokens, by the names of Trace's fields."""
        series = {name: getattr(self, name)[:, :, :tokens] for name in (*MEASURES, *NORMS)}
        maps = {place: matrix[:tokens, :tokens] for place, matrix in self.maps.items()}
        return {"sink_tokens": self.sinks, "maps": maps, **series}


def array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().float().cpu().numpy() if tensor.is_floating_point() else tensor.cpu().numpy()

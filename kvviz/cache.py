"""Slots that can really be emptied: the only place that subclasses a transformers cache."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import CacheLayerMixin


class SlotsLayer(CacheLayerMixin):
    """Keys and values of one layer, (1, H, n, D), in position order; every KV head holds its own n tokens.

    ``update`` returns what was carried and the new tokens; ``retain`` then drops the slots that do not survive.
    ``get_seq_length`` counts every token ever seen, for that is what positions are counted from.
    """

    keys: Tensor
    values: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.cumulative_length = 0  # the name that CacheLayerMixin.reset clears

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.keys, self.values = key_states[..., :0, :], value_states[..., :0, :]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.cumulative_length += key_states.shape[-2]
        self.keys = torch.cat([self.keys, key_states], dim=-2)
        self.values = torch.cat([self.values, value_states], dim=-2)
        return self.keys, self.values

    def retain(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Keep only these slots, (H, n) ascending indices, or (1, n) when all heads keep the same."""
        self.keys, self.values = gather_slots(self.keys, slots), gather_slots(self.values, slots)
        return self.keys, self.values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        held = self.keys.shape[-2] if self.is_initialized else 0
        return held + query_length, self.cumulative_length - held

    def get_seq_length(self) -> int:
        return self.cumulative_length

    def get_max_length(self) -> int:
        return -1

    def reset(self) -> None:
        """Drop everything: a later run must equal a fresh one."""
        del self.keys, self.values
        self.is_initialized = False
        super().reset()

    @property
    def nbytes(self) -> int:
        """Bytes of the key and value tensors held now."""
        return self.keys.nbytes + self.values.nbytes if self.is_initialized else 0


def gather_slots(states: Tensor, slots: Tensor) -> Tensor:
    """(1, H, K, D) and (H or 1, n) → (1, H, n, D) as tensors of their own, so that the dropped slots are freed."""
    if len(slots) == 1:
        return states.index_select(2, slots[0])
    return states.gather(2, slots[None, :, :, None].expand(1, -1, -1, states.shape[-1]))


def slots_cache(layers: list[SlotsLayer]) -> Cache:
    """These layers as the cache object that a transformers model takes."""
    return Cache(layers=[*layers])


def native_windows(config: Any) -> list[int | None]:
    """The model's own sliding window of each layer (None = full attention), as transformers itself resolves it."""
    layers = DynamicCache(config=config).layers
    for index, layer in enumerate(layers):
        if not isinstance(layer, CacheLayerMixin) or not hasattr(layer, "is_sliding"):
            raise ValueError(
                f"Layer {index} of this {config.model_type} model is a {type(layer).__name__}, not plain attention; "
                "kvviz runs models whose layers all use full or sliding attention."
            )
    return [getattr(layer, "sliding_window", None) for layer in layers]

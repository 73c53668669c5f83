"""Slots that can really be emptied: the only place that subclasses a transformers cache."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import CacheLayerMixin

from kvviz.cache.opening import open_store
from kvviz.cache.quantiser import BlockQuantisation
from kvviz.choices.storage import Storage, Widths


class SlotsLayer(CacheLayerMixin):
    """Keys and values of one layer, (1, H, n, D), in position order; every KV head holds its own n tokens.

    ``update`` returns what was carried and the new tokens; ``settle`` and ``retain`` then quantise or drop slots. The
    numbers lie in a store. ``get_seq_length`` counts every token ever seen, for positions are counted from that.
    """

    def __init__(self, storage: Storage, device: torch.device) -> None:
        super().__init__()
        self.storage, self.device = storage, device
        self.store = open_store(storage, device)
        self.widths, self.heads = Widths(0, 0, 0), 0  # heads: 1 where a latent serves all heads of the attention
        self.cumulative_length = 0  # the name that CacheLayerMixin.reset clears

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.widths = Widths(key_states.shape[-1], value_states.shape[-1], key_states.element_size())
        self.heads = key_states.shape[1]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.cumulative_length += key_states.shape[-2]
        return self.store.add(key_states, value_states)

    def settle(self, quantisation: BlockQuantisation | None) -> None:
        """A block has ended: quantise or move what its storage asks for."""
        self.store.settle(quantisation)

    def retain(self, slots: Tensor) -> None:
        """Keep only these slots, (H, n) ascending indices, one set for all heads expanded."""
        self.store.retain(slots)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.store.held + query_length, self.cumulative_length - self.store.held

    def get_seq_length(self) -> int:
        return self.cumulative_length

    def get_max_length(self) -> int:
        return -1

    def reset(self) -> None:
        """Drop everything: a later run must equal a fresh one."""
        self.store = open_store(self.storage, self.device)
        self.is_initialized = False
        super().reset()

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors that hold keys, values and their scales now."""
        return self.store.nbytes


def slots_cache(layers: list[SlotsLayer]) -> Cache:
    """These layers as the cache object that a transformers model takes."""
    return Cache(layers=[*layers])


def native_windows(config: Any) -> list[int | None]:
    """The model's own sliding window of each layer (None = full attention), as transformers itself resolves it."""
    layers = DynamicCache(config=config).layers
    for index, layer in enumerate(layers):
        # an indexer chooses keys by a rule of its own, and keeps keys of its own for it
        has_indexer = hasattr(layer, "update_indexer")
        if not isinstance(layer, CacheLayerMixin) or not hasattr(layer, "is_sliding") or has_indexer:
            raise ValueError(
                f"Layer {index} of this {config.model_type} model is a {type(layer).__name__}, not plain attention; "
                "kvviz runs models whose layers all use full or sliding attention."
            )
    return [getattr(layer, "sliding_window", None) for layer in layers]

"""Which tensors stand behind each kind of storage: its store, and who decides what it quantises when.

One registration a kind. A kind that is not registered is refused; nothing stands in for it.
"""

from __future__ import annotations

from functools import singledispatch

import torch

from kvviz.cache.packed import PackedStore
from kvviz.cache.quantiser import Quantiser
from kvviz.cache.stores import NativeStore, OffloadStore, Store
from kvviz.choices.storage import Native, Offload, Quantised, Storage


@singledispatch
def open_store(storage: Storage, device: torch.device) -> Store:
    """An empty store of this kind; TypeError for a kind that nobody has registered one for."""
    raise TypeError(f"There is no store for {storage.name()}: register one with open_store.register.")


@open_store.register
def _(storage: Native, device: torch.device) -> Store:
    return NativeStore()


@open_store.register
def _(storage: Offload, device: torch.device) -> Store:
    # where the model runs on the CPU there is nowhere else to move cold entries to
    return NativeStore() if device.type == "cpu" else OffloadStore(storage.resident)


@open_store.register
def _(storage: Quantised, device: torch.device) -> Store:
    return PackedStore(storage)


@singledispatch
def open_quantiser(storage: Storage, shape: tuple[int, ...], device: torch.device) -> Quantiser | None:
    """Who decides what is quantised when, for slots of these leading axes; None where entries stay as they came."""
    if not storage.is_exact:
        raise TypeError(f"There is no quantiser for {storage.name()}: register one with open_quantiser.register.")
    return None


@open_quantiser.register
def _(storage: Quantised, shape: tuple[int, ...], device: torch.device) -> Quantiser:
    return Quantiser(storage, shape, device)

"""How a kept entry is stored, one file a kind: its knobs, its bytes, the terms of its formula. No tensor is touched.

A kind says everything about its own numbers; the tensors behind it are in ``kvviz.cache``, registered for its class.
"""

from kvviz import knobs
from kvviz.choices.storage.base import Storage, Stored, Terms, Widths
from kvviz.choices.storage.native import Native
from kvviz.choices.storage.offload import Offload
from kvviz.choices.storage.quantised import Int2, Int4, Int8, Quantised

__all__ = [
    "STORAGES",
    "Int2",
    "Int4",
    "Int8",
    "Native",
    "Offload",
    "Quantised",
    "Storage",
    "Stored",
    "Terms",
    "Widths",
    "parse_storage",
]

STORAGES: dict[str, type[Storage]] = {cls.name(): cls for cls in (Native, Int8, Int4, Int2, Offload)}


def parse_storage(text: str) -> Storage:
    """``int4:group=32,residual=64`` → the storage; ValueError with the choices otherwise."""
    return knobs.parse(text, STORAGES)

"""Storage: how a kept entry is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kvviz import knobs
from kvviz.knobs import Choice


@dataclass(frozen=True)
class Storage(Choice):
    """How the keys and values of a kept token are held in memory."""

    kind: ClassVar[str] = "storage"


@dataclass(frozen=True)
class Native(Storage):
    """In the number format the model computes in."""

    title = "Native: the model's own number format"
    source = "no change"


STORAGES: dict[str, type[Storage]] = {cls.name(): cls for cls in (Native,)}


def parse_storage(text: str) -> Storage:
    """``native`` → the storage; ValueError with the choices otherwise."""
    return knobs.parse(text, STORAGES)

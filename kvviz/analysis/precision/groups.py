"""One group of numbers that share a scale, worked through; and the true bytes of a coded cache, part by part."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.cache.quantise import Codes, decode_keys, decode_values, encode_keys, encode_values, unpack
from kvviz.choices.setup import Setup
from kvviz.choices.storage import Quantised
from kvviz.run.engine import Pass
from kvviz.run.reading import Attended, Reading
from kvviz.text.counting import plural

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Group:
    """Numbers of keys that share a scale, (n,): code = round((x − low) / scale), and low + code · scale comes back."""

    numbers: Floats
    codes: NDArray[np.uint8]
    scale: float
    low: float
    restored: Floats
    names: tuple[int, ...]  # positions of the keys, or channels of the one key

    @property
    def nbytes(self) -> int:
        return self.numbers.nbytes + self.codes.nbytes + self.restored.nbytes + 8 * len(self.names)


class Found(Exception):
    """The layer that was asked for has attended."""


def keys_of(model: PreTrainedModel, ids: Tensor, layer: int, head: int) -> Tensor:
    """The keys of one KV head, (T, D), as the cache holds them. ValueError for a layer or head that is not there."""
    reading, found = Reading(model), []

    def watch(index: int, given: Attended) -> None:
        if index == layer:
            found.append(given.key[0])
            raise Found

    reading.watcher = watch
    with contextlib.suppress(Found):
        reading.read(ids)
    if not found or not 0 <= head < len(found[0]):
        raise ValueError(f"There is no KV head {head} in layer {layer}; this model has {len(reading.layers)} layers.")
    keys: Tensor = found[0][head]
    return keys


def group_of(keys: Tensor, storage: Quantised, way: str, block: int, channel: int) -> Group:
    """One channel of a block of keys (T, D), or with ``way`` "token" the channel's group in the block's first key.

    Raises ValueError for a block or a channel that is not there.
    """
    size, width = storage.group, keys.shape[1]
    blocks = len(keys) // size
    if not 0 <= block < blocks:
        raise ValueError(
            f"There is no block {block}: {len(keys)} keys make {plural(blocks, 'block')} of {size}, counted from 0."
            if blocks
            else f"{len(keys)} keys do not make one block of {size}; choose a smaller group or a longer text."
        )
    if not 0 <= channel < width:
        raise ValueError(f"There is no channel {channel}: a key of this model has the channels 0–{width - 1}.")
    if way == "token":
        return in_one_key(keys[block * size], storage, channel)
    members = keys[block * size : (block + 1) * size]
    codes = encode_keys(members[None], storage.bits)
    numbers = unpack(codes.packed, storage.bits, members.numel()).view(members.shape)[:, channel]
    back = decode_keys(codes, storage.bits, size)[0, :, channel]
    places = tuple(range(block * size, (block + 1) * size))
    return grouped(members[:, channel], numbers, codes, channel, back, places)


def in_one_key(key: Tensor, storage: Quantised, channel: int) -> Group:
    """The channels of one key (D,) that share a scale with ``channel``."""
    place = channel // storage.group
    own = slice(place * storage.group, min((place + 1) * storage.group, len(key)))
    codes = encode_values(key[None], storage.bits, storage.group)
    numbers = unpack(codes.packed, storage.bits, len(key))[0]
    back = decode_values(codes, storage.bits, storage.group, len(key))[0]
    return grouped(key[own], numbers[own], codes, place, back[own], tuple(range(own.start, own.stop)))


def grouped(x: Tensor, numbers: Tensor, codes: Codes, place: int, back: Tensor, names: tuple[int, ...]) -> Group:
    exact, restored = (part.cpu().double().numpy() for part in (x, back))
    scale, low = float(codes.scale[0, place]), float(codes.low[0, place])
    return Group(exact, numbers.cpu().numpy(), scale, low, restored, names)


@dataclass(frozen=True)
class Bytes:
    """What the tensors of a cache hold after a text: codes, scales and minima, entries that are still exact."""

    codes: int
    scales: int
    exact: int

    @property
    def total(self) -> int:
        return self.codes + self.scales + self.exact


def bytes_held(run: Pass) -> Bytes:
    """Of the tensors that a run holds now."""
    found = [0, 0, 0]
    for layer in run.slots:
        sides = [getattr(layer.store, side, None) for side in ("keys", "values")]
        for side in sides:
            if side is None or side.codes is None:
                continue
            found[0] += side.codes.packed.nbytes
            found[1] += side.codes.scale.nbytes + side.codes.low.nbytes
    found[2] = run.cache_bytes - found[0] - found[1]
    return Bytes(*found)


def read_whole(model: PreTrainedModel, ids: Tensor, setup: Setup, block: int = 256) -> Pass:
    """A run that has read the text, with its cache."""
    run = Pass(model, setup, prompt_tokens=max(1, len(ids) // 2))
    for part in ids.split(block):
        run.feed(part, last_only=True)
    return run

"""Where the numbers of one layer's slots really lie: as they are, packed into codes, or partly in CPU memory.

A store hands out dense keys and values, (1, H, n, D), and after each block is told what to quantise and what to drop.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from kvviz.cache.quantiser import BlockQuantisation


class Store(Protocol):
    """What ``cache.SlotsLayer`` needs of a store."""

    def add(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Take new entries, (1, H, R, D); the answer is all of them, old and new."""

    def retain(self, slots: Tensor) -> None:
        """Keep only these slots, (H, n) ascending indices."""

    def settle(self, quantisation: BlockQuantisation | None) -> None:
        """A block has ended: quantise what it says, move what has grown cold."""

    @property
    def held(self) -> int:
        """Slots of each head."""

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors that hold keys, values and their scales."""

    @property
    def cold_nbytes(self) -> int:
        """Of them, bytes that lie away from the model's device."""


NEAR = 16  # a slot that leaves before this place takes fewer copies than gathering the others


def gather_slots(states: Tensor, slots: Tensor) -> Tensor:
    """(1, H, K, D) and (H, n) → (1, H, n, D) as tensors of their own, so that the dropped slots are freed."""
    if slots.stride(0) == 0:  # one set for all heads, expanded
        return states.index_select(2, slots[0])
    return states.gather(2, slots[None, :, :, None].expand(1, -1, -1, states.shape[-1]))


def lost_slot(slots: Tensor, held: int) -> int | None:
    """Where ``slots`` (H, n) leave out a single one of ``held``, the same in all heads, and it lies near the front: it.

    On a GPU the answer would have to be waited for, and copying all slots costs little.
    """
    one_set, kept = slots.stride(0) == 0, slots[0]
    if not one_set or slots.device.type != "cpu" or len(kept) != held - 1 or held <= NEAR:
        return None
    return next((place for place, slot in enumerate(kept[:NEAR].tolist()) if slot != place), None)


class Side:
    """Keys or values of one layer, (1, H, n, D), and room for more behind: a step writes its entry and copies none."""

    SPARE = 64  # entries

    def __init__(self, states: Tensor) -> None:
        self.room, self.first, self.count = states, 0, states.shape[2]

    @property
    def states(self) -> Tensor:
        """A view; the next step may write over it."""
        return self.room[:, :, self.first : self.first + self.count]

    def add(self, states: Tensor) -> None:
        rows = states.shape[2]
        if self.first + self.count + rows > self.room.shape[2]:
            self.move(rows)
        self.count += rows
        self.room[:, :, self.first + self.count - rows : self.first + self.count] = states

    def move(self, rows: int) -> None:
        """Make room for ``rows`` more entries; blocks of many rows leave none to spare, so that memory stays flat."""
        spare = self.SPARE if rows == 1 else 0
        shape = *self.room.shape[:2], self.count + rows + spare, self.room.shape[3]
        room = self.room.new_empty(shape)
        room[:, :, : self.count] = self.states
        self.room, self.first = room, 0

    def drop_one(self, slot: int) -> None:
        """Let go of the same slot of every head: those before it move up, which are none in a window."""
        before = slice(self.first, self.first + slot)
        if slot:
            self.room[:, :, self.first + 1 : self.first + slot + 1] = self.room[:, :, before].clone()
        self.first += 1
        self.count -= 1


class NativeStore:
    """Keys and values in the model's own number format."""

    def __init__(self) -> None:
        self.sides: tuple[Side, Side] | None = None

    @property
    def entries(self) -> tuple[Tensor, Tensor] | None:
        """Keys and values, (1, H, n, D)."""
        return None if self.sides is None else (self.sides[0].states, self.sides[1].states)

    @entries.setter
    def entries(self, entries: tuple[Tensor, Tensor]) -> None:
        self.sides = Side(entries[0]), Side(entries[1])

    def add(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if self.sides is None:
            self.entries = keys, values
            return keys, values
        for side, states in zip(self.sides, (keys, values), strict=True):
            side.add(states)
        return self.sides[0].states, self.sides[1].states

    def retain(self, slots: Tensor) -> None:
        assert self.sides is not None and self.entries is not None
        lost = lost_slot(slots, self.held)
        if lost is None:
            self.entries = gather_slots(self.entries[0], slots), gather_slots(self.entries[1], slots)
        else:
            for side in self.sides:
                side.drop_one(lost)

    def settle(self, quantisation: BlockQuantisation | None) -> None:
        pass

    @property
    def held(self) -> int:
        return 0 if self.sides is None else self.sides[0].count

    @property
    def nbytes(self) -> int:
        """Of the entries held; the room to spare is not counted."""
        return 0 if self.entries is None else sum(part.nbytes for part in self.entries)

    @property
    def cold_nbytes(self) -> int:
        return 0


class OffloadStore(NativeStore):
    """The latest entries on the model's device, the older ones elsewhere; a step brings them over and lets them go."""

    def __init__(self, resident: int) -> None:
        super().__init__()
        self.resident = resident
        self.cold: tuple[Tensor, Tensor] | None = None

    def add(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        self.bring(keys.device)
        return super().add(keys, values)

    def retain(self, slots: Tensor) -> None:
        self.bring(slots.device)
        super().retain(slots)
        self.place()

    def settle(self, quantisation: BlockQuantisation | None) -> None:
        self.place()

    def bring(self, device: torch.device) -> None:
        """Put the cold entries before the others again."""
        if self.cold is None or self.entries is None:
            return
        pairs = zip(self.cold, self.entries, strict=True)
        keys, values = (torch.cat([cold.to(device), hot], -2) for cold, hot in pairs)
        self.entries, self.cold = (keys, values), None

    def place(self) -> None:
        """The latest ``resident`` entries stay on the device, the older ones go: so it must be after every step."""
        if self.entries is None or self.held <= self.resident:
            return
        self.bring(self.entries[0].device)
        split = self.held - self.resident
        keys, values = self.entries
        # copies: a slice would keep the whole tensor alive on the device
        self.cold = keys[..., :split, :].to("cpu", copy=True), values[..., :split, :].to("cpu", copy=True)
        self.entries = keys[..., split:, :].clone(), values[..., split:, :].clone()

    @property
    def held(self) -> int:
        return super().held + (0 if self.cold is None else self.cold[0].shape[-2])

    @property
    def cold_nbytes(self) -> int:
        return 0 if self.cold is None else sum(part.nbytes for part in self.cold)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.cold_nbytes

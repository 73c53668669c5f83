"""Which entries of a quantised cache are held in code, and after which step they came to be.

Steps decide, not blocks of rows: keys are quantised when a head holds ``residual`` exact ones after a step, all of them
at once; a value when ``residual`` later ones are held. So a row of a block may see some entries exact that a later row
of the same block sees quantised.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from kvviz.cache.quantise import decode_keys, decode_values, encode_keys, encode_values
from kvviz.choices.storage import Quantised

NEVER = 2**31 - 1  # the step of something that has not happened


@dataclass(frozen=True, eq=False)
class BlockQuantisation:
    """What is quantised when in one layer during one block of rows; H KV heads, K slots."""

    storage: Quantised
    start: int  # the first row's position
    key_at: Tensor  # (H, K): the step after which the slot's key is quantised, or NEVER
    value_at: Tensor  # (H, K)
    heads: Tensor  # (E,) the head of each time that keys were quantised in this block
    slots: Tensor  # (E, residual) the slots quantised then

    @property
    def new_values(self) -> Tensor:
        """The slots whose value is quantised in this block, (H, K) bool."""
        return (self.value_at >= self.start) & (self.value_at < NEVER)

    @property
    def is_idle(self) -> bool:
        return not len(self.heads) and not bool(self.new_values.any())

    def keys(self, exact: Tensor) -> Tensor:
        """The keys as they are at the block's end, (1, H, K, D), quantised ones decoded."""
        keys = exact.clone()
        keys[0, self.heads[:, None], self.slots] = restored_keys(exact, self.heads, self.slots, self.storage)
        return keys

    def values(self, exact: Tensor) -> Tensor:
        """The values as they are at the block's end."""
        values, chosen = exact.clone(), self.new_values
        bits, group = self.storage.bits, self.storage.group
        codes = encode_values(exact[0][chosen], bits, group)
        values[0, chosen] = decode_values(codes, bits, group, exact.shape[-1])
        return values


def restored_keys(exact: Tensor, heads: Tensor, slots: Tensor, storage: Quantised) -> Tensor:
    """What quantising makes of these keys, (E, residual, D): packed into blocks and brought back."""
    picked = exact[0][heads[:, None], slots]
    blocks = picked.reshape(-1, storage.group, picked.shape[-1])
    return decode_keys(encode_keys(blocks, storage.bits), storage.bits, storage.group).view(picked.shape)


class Quantiser:
    """Follows slots from step to step and says which of them are quantised, (layers, heads, K).

    The axis of layers or heads may be 1 where they are all alike; ``block`` answers for one layer, all its heads.
    """

    def __init__(self, storage: Quantised, shape: tuple[int, ...], device: torch.device) -> None:
        self.storage = storage
        self.key_at = torch.empty(*shape, 0, dtype=torch.long, device=device)
        self.value_at = self.key_at
        self.owners: list[Tensor] = []  # of the block at hand: which of the flattened leading axes, (e,) each
        self.slots: list[Tensor] = []  # (e, residual) each

    def begin(self, rows: int) -> None:
        """A block of so many new tokens begins; all of them are exact."""
        self.key_at = F.pad(self.key_at, (0, rows), value=NEVER)
        self.value_at = F.pad(self.value_at, (0, rows), value=NEVER)
        self.owners, self.slots = [], []

    def waiting(self, present: Tensor) -> int:
        """The most exact keys that any head holds, of the slots ``present``, (layers, heads, K) bool."""
        return int((present & (self.key_at == NEVER)).sum(-1).max())

    def after(self, step: int, present: Tensor) -> tuple[Tensor, Tensor] | None:
        """Quantise what has to be after the step at which these slots were held; of keys, if any: owners, slots."""
        residual = self.storage.residual
        exact = present & (self.value_at == NEVER)
        spare = exact & (exact.sum(-1, keepdim=True) - exact.cumsum(-1) >= residual)
        self.value_at = torch.where(spare, step, self.value_at)
        exact = present & (self.key_at == NEVER)
        full = exact.sum(-1) >= residual
        if not bool(full.any()):
            return None
        members = exact & full[..., None]
        self.key_at = torch.where(members, step, self.key_at)
        owners = full.flatten().nonzero()[:, 0]
        slots = members.flatten(0, -2)[owners].nonzero()[:, 1].view(len(owners), -1)
        self.owners.append(owners)
        self.slots.append(slots)
        return owners, slots

    def restored(self, exact: Tensor, heads: Tensor, slots: Tensor) -> Tensor:
        """These keys as they are seen once quantised, (e, residual, D); ``exact`` (1, H, K, D)."""
        return restored_keys(exact, heads, slots, self.storage)

    def block(self, start: int, index: int, kv_heads: int) -> BlockQuantisation:
        """What the block that begins at ``start`` quantised in the layer at ``index``, for each of its heads."""
        index = min(index, len(self.key_at) - 1)
        key_at, value_at = (at[index].expand(kv_heads, -1) for at in (self.key_at, self.value_at))
        return BlockQuantisation(self.storage, start, key_at, value_at, *self.members(index, kv_heads))

    def members(self, index: int, kv_heads: int) -> tuple[Tensor, Tensor]:
        """Heads and slots of every time keys of the layer were quantised; what all heads share is said for each."""
        if not self.owners:
            none = self.key_at.new_empty(0)
            return none, none.view(0, self.storage.residual)
        own_heads = self.key_at.shape[1]
        owners, slots = torch.cat(self.owners), torch.cat(self.slots)
        mine = owners // own_heads == index
        owners, slots = owners[mine] % own_heads, slots[mine]
        if own_heads == kv_heads:
            return owners, slots
        every = torch.arange(kv_heads, device=owners.device)
        return every.repeat(len(owners)), slots.repeat_interleave(kv_heads, 0)

    def retain(self, survivors: Tensor) -> None:
        """The slots left after the block, (layers, heads, n) indices."""
        self.key_at, self.value_at = self.key_at.gather(-1, survivors), self.value_at.gather(-1, survivors)

    def of_layers(self, index: Tensor) -> Quantiser:
        """A quantiser that goes on with some of the layers alone."""
        part = Quantiser(self.storage, (0,), self.key_at.device)
        part.key_at, part.value_at = self.key_at[index], self.value_at[index]
        return part

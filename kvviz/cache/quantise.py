"""Whole numbers of a few bits for keys and values, with the scale and the minimum that bring them back.

KIVI's layout (Liu et al., KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache, 2024): a key's channels
differ much from each other and little from token to token, so a block of tokens shares one scale a channel; a value has
no such channels, so groups of its own channels share one. Scale and minimum keep the model's number format, so that a
constant group comes back exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class Codes(NamedTuple):
    """N packed rows and their scales. code = round((x − low) / scale), scale = (high − low) / (2^bits − 1)."""

    packed: Tensor  # (N, bytes) uint8
    scale: Tensor  # (N, S) in the number format of what was packed
    low: Tensor  # (N, S)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self)

    def take(self, rows: Tensor) -> Codes:
        return Codes(*(part[rows] for part in self))

    def join(self, other: Codes) -> Codes:
        return Codes(*(torch.cat(parts) for parts in zip(self, other, strict=True)))


def encode_keys(blocks: Tensor, bits: int) -> Codes:
    """Blocks of tokens (N, group, D): one scale for each channel of a block, S = D."""
    codes, scale, low = coded(blocks, bits, 1)
    return Codes(pack(codes.flatten(1), bits), scale.squeeze(1), low.squeeze(1))


def decode_keys(codes: Codes, bits: int, group: int) -> Tensor:
    """The blocks that ``encode_keys`` packed, (N, group, D), as near as the codes are."""
    width = codes.scale.shape[1]
    numbers = unpack(codes.packed, bits, group * width).view(-1, group, width)
    return decoded(numbers, codes.scale[:, None], codes.low[:, None])


def encode_values(values: Tensor, bits: int, group: int) -> Codes:
    """Values (N, D): one scale for each ``group`` of channels, S = ⌈D / group⌉; the last group may be smaller."""
    codes, scale, low = coded(in_groups(values, group), bits, 2)
    return Codes(pack(codes.flatten(1)[:, : values.shape[1]], bits), scale.squeeze(2), low.squeeze(2))


def decode_values(codes: Codes, bits: int, group: int, width: int) -> Tensor:
    """The values that ``encode_values`` packed, (N, D), D = ``width``."""
    numbers = in_groups(unpack(codes.packed, bits, width), group)
    return decoded(numbers, codes.scale[..., None], codes.low[..., None]).flatten(1)[:, :width]


def coded(x: Tensor, bits: int, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Codes (uint8), scale and minimum of ``x`` along ``dim``; a group without spread has scale 0 and codes 0."""
    wide = torch.promote_types(x.dtype, torch.float32)
    low, high = x.amin(dim, keepdim=True), x.amax(dim, keepdim=True)
    scale = ((high.to(wide) - low.to(wide)) / (2**bits - 1)).to(x.dtype)
    steps = (x.to(wide) - low.to(wide)) / torch.where(scale == 0, 1, scale).to(wide)
    codes = torch.where(scale == 0, 0, steps.round().clamp(0, 2**bits - 1))
    return codes.to(torch.uint8), scale, low


def decoded(codes: Tensor, scale: Tensor, low: Tensor) -> Tensor:
    wide = torch.promote_types(scale.dtype, torch.float32)
    return (codes.to(wide) * scale.to(wide) + low.to(wide)).to(scale.dtype)


def in_groups(rows: Tensor, group: int) -> Tensor:
    """(N, D) → (N, ⌈D / group⌉, group); a smaller last group is filled with its own last channel."""
    spare = -rows.shape[1] % group
    filled = torch.cat([rows, rows[:, -1:].expand(-1, spare)], 1) if spare else rows
    return filled.view(len(rows), -1, group)


def pack(codes: Tensor, bits: int) -> Tensor:
    """(N, M) codes → (N, ⌈M · bits / 8⌉) bytes, the first code in the lowest bits."""
    each = 8 // bits
    filled = F.pad(codes, (0, -codes.shape[1] % each)).view(len(codes), -1, each)
    shifts = torch.arange(0, 8, bits, device=codes.device, dtype=torch.uint8)
    return (filled << shifts).sum(-1, dtype=torch.uint8)


def unpack(packed: Tensor, bits: int, count: int) -> Tensor:
    """Undo ``pack``: the first ``count`` codes of each row, (N, count)."""
    shifts = torch.arange(0, 8, bits, device=packed.device, dtype=torch.uint8)
    codes = (packed[..., None] >> shifts) & (2**bits - 1)
    return codes.flatten(1)[:, :count]

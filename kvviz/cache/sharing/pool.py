"""A pool of blocks with reference counts."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field


class Full(Exception):
    """Every block of the pool is referenced."""


@dataclass
class Block:
    """One block: the tokens written into it, and how many sequences hold it."""

    number: int
    tokens: list[int] = field(default_factory=list)
    references: int = 0


class BlockPool:
    """Blocks of ``size`` tokens, at most ``limit`` of them (None: as many as are asked for)."""

    def __init__(self, size: int, limit: int | None = None) -> None:
        self.size, self.limit = size, limit
        self.blocks: dict[int, Block] = {}
        self.freed: list[int] = []  # a heap: the lowest number is used again first

    @property
    def has_room(self) -> bool:
        return self.limit is None or len(self.blocks) < self.limit

    def allocate(self) -> Block:
        """A new block, empty and held by nobody. Raises Full where there is no room."""
        if not self.has_room:
            raise Full
        number = heapq.heappop(self.freed) if self.freed else len(self.blocks)
        self.blocks[number] = Block(number)
        return self.blocks[number]

    def free(self, number: int) -> None:
        """Let go of a block that nobody holds."""
        if self.blocks[number].references:
            raise ValueError(f"Block {number} is still held by {self.blocks[number].references} sequences.")
        del self.blocks[number]
        heapq.heappush(self.freed, number)

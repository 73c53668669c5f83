"""Sequences over shared blocks: opened with what is held already, forked, written to, closed; what is full is evicted.

As serving engines do it (Kwon et al., vLLM, 2023; Zheng et al., SGLang's RadixAttention, 2024): only whole blocks are
shared, the last token of a prompt is always computed (its answer is wanted), unreferenced blocks stay until there is no
room, and then those unused longest leave, leaves first.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from typing import Literal

from kvviz.cache.sharing.pool import Block, BlockPool, Full
from kvviz.cache.sharing.prefix_tree import Node, PrefixTree

Kind = Literal["hit", "allocate", "copy", "evict", "free"]


@dataclass(frozen=True)
class Event:
    """One thing that happened to a block; of a copy, ``source`` is the block that was copied."""

    kind: Kind
    block: int
    source: int | None = None


@dataclass(eq=False)
class Sequence:
    """A prompt, or an answer to one: its tokens and the blocks that hold them, in order."""

    tokens: list[int]
    blocks: list[int]
    hit_tokens: int = 0
    path: list[Node] = field(default_factory=list)  # of its leading blocks, those that are in the tree


class SharedBlocks:
    """The bookkeeping of one pool. Every change is written to ``events``, for whoever holds the tensors."""

    def __init__(self, size: int, limit: int | None = None) -> None:
        self.pool, self.tree = BlockPool(size, limit), PrefixTree(size)
        self.events: list[Event] = []

    @property
    def size(self) -> int:
        return self.pool.size

    def open(self, tokens: Items[int]) -> Sequence:
        """A new sequence over a prompt. Raises Full where its blocks find no room: nothing is held then."""
        nodes = self.tree.match(tokens, (len(tokens) - 1) // self.size)
        sequence = Sequence(list(tokens), [], len(nodes) * self.size, list(nodes))
        for node in nodes:
            assert node.block is not None
            self.hold(sequence, self.pool.blocks[node.block], "hit")
        try:
            for start in range(sequence.hit_tokens, len(tokens), self.size):
                self.add_block(sequence, list(tokens[start : start + self.size]))
        except Full:
            self.close(sequence)
            raise
        # not before all of them are there: what a failed attempt left in the tree would be hits without entries
        for place in range(len(nodes), len(sequence.blocks)):
            self.share(sequence, place)
        return sequence

    def add_block(self, sequence: Sequence, tokens: list[int]) -> None:
        """A new block at the end of a sequence."""
        block = self.allocate("allocate")
        block.tokens = tokens
        self.hold(sequence, block)

    def share(self, sequence: Sequence, place: int) -> None:
        """Put one of its blocks into the tree, if it is whole and all blocks before it are there as its own."""
        block = self.pool.blocks[sequence.blocks[place]]
        if len(block.tokens) < self.size or len(sequence.path) != place:
            return
        parent = sequence.path[-1] if sequence.path else self.tree.root
        node = self.tree.insert(parent, tuple(block.tokens), block.number)
        if node is not None:
            sequence.path.append(node)

    def hold(self, sequence: Sequence, block: Block, kind: Kind | None = None) -> None:
        block.references += 1
        sequence.blocks.append(block.number)
        if kind is not None:
            self.events.append(Event(kind, block.number))

    def allocate(self, kind: Kind, source: int | None = None) -> Block:
        """A free block; where there is none, the leaf unused longest that nobody holds is evicted for it."""
        if not self.pool.has_room:
            spare = [leaf for leaf in self.tree.leaves() if not self.pool.blocks[leaf.block or 0].references]
            if not spare:
                raise Full
            self.evict(min(spare, key=lambda leaf: leaf.used))
        block = self.pool.allocate()
        self.events.append(Event(kind, block.number, source))
        return block

    def evict(self, leaf: Node) -> None:
        assert leaf.block is not None
        self.tree.remove(leaf)
        self.pool.free(leaf.block)
        self.events.append(Event("evict", leaf.block))

    def fork(self, sequence: Sequence) -> Sequence:
        """Another sequence over the same blocks, a part-filled last one too."""
        other = Sequence(list(sequence.tokens), [], len(sequence.tokens), list(sequence.path))
        for number in sequence.blocks:
            self.hold(other, self.pool.blocks[number], "hit")
        return other

    def append(self, sequence: Sequence, token: int) -> int:
        """Write one token; the answer is the block it lies in. A block that others hold too is copied first.

        Raises Full, and writes nothing, where a block is needed and there is no room.
        """
        last = self.pool.blocks[sequence.blocks[-1]]
        if len(last.tokens) == self.size:
            self.add_block(sequence, [token])
        else:
            if last.references > 1:
                last = self.copied(sequence, last)
            last.tokens.append(token)
        self.share(sequence, len(sequence.blocks) - 1)
        sequence.tokens.append(token)
        return sequence.blocks[-1]

    def copied(self, sequence: Sequence, block: Block) -> Block:
        """Copy on write: a block of its own in place of the shared last one."""
        own = self.allocate("copy", block.number)
        own.tokens, own.references = list(block.tokens), 1
        block.references -= 1
        sequence.blocks[-1] = own.number
        return own

    def close(self, sequence: Sequence) -> None:
        """Let go of all blocks: those in the tree stay until room is needed, the others are free at once."""
        for number in sequence.blocks:
            block = self.pool.blocks[number]
            block.references -= 1
            if not block.references and number not in self.tree.nodes:
                self.pool.free(number)
                self.events.append(Event("free", number))
        sequence.blocks, sequence.path = [], []

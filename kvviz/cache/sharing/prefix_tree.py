"""A tree over whole blocks: a path from its root is the beginning of a prompt whose blocks are held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Key = tuple[int, ...]  # the tokens of one whole block


@dataclass(eq=False)
class Node:
    """One whole block; the root stands for the empty beginning and has none."""

    key: Key
    block: int | None
    parent: Node | None
    used: int = 0  # when it was last part of a prompt
    children: dict[Key, Node] = field(default_factory=dict)


class PrefixTree:
    """Which beginnings are held. With blocks of one token it is a tree over tokens."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.root = Node((), None, None)
        self.nodes: dict[int, Node] = {}  # by block
        self.clock = 0

    def match(self, tokens: Sequence[int], most: int) -> list[Node]:
        """The nodes of the longest held beginning, of at most ``most`` blocks; they count as used now."""
        found, node = [], self.root
        for key in self.keys(tokens)[:most]:
            child = node.children.get(key)
            if child is None:
                break
            found.append(child)
            node = child
        self.touch(found)
        return found

    def keys(self, tokens: Sequence[int]) -> list[Key]:
        """The whole blocks of a prompt."""
        whole = len(tokens) // self.size
        return [tuple(tokens[place * self.size : (place + 1) * self.size]) for place in range(whole)]

    def touch(self, nodes: Sequence[Node]) -> None:
        self.clock += 1
        for node in nodes:
            node.used = self.clock

    def insert(self, parent: Node, key: Key, block: int) -> Node | None:
        """Put a block under its predecessor; None where that beginning is held by another block already."""
        if key in parent.children:
            return None
        node = Node(key, block, parent, self.clock)
        parent.children[key] = node
        self.nodes[block] = node
        return node

    def remove(self, node: Node) -> None:
        """Take a leaf out."""
        if node.children or node.parent is None or node.block is None:
            raise ValueError("Only a leaf can leave: what follows it would hang in the air.")
        del node.parent.children[node.key]
        del self.nodes[node.block]

    def leaves(self) -> Iterator[Node]:
        return (node for node in self.nodes.values() if not node.children)

"""A draft tree: tokens that may come next, each under the one it follows. No tensor of a model is touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

MOST_NODES = 64  # drafted tokens of one tree
ROOT = -1  # the parent of the first drafted tokens: the last token written, which is not in the cache yet


@dataclass(frozen=True)
class Tree:
    """Drafted tokens with their parents, which come before them; ``ROOT`` for those that follow the last token."""

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(not ROOT <= parent < node for node, parent in enumerate(self.parents)):
            raise ValueError("Every drafted token must come after its parent.")

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """How many tokens after the root each node stands, from 1 on."""
        found: list[int] = []
        for parent in self.parents:
            found.append(1 if parent == ROOT else found[parent] + 1)
        return tuple(found)

    def child(self, node: int, token: int) -> int | None:
        """The child of a node (or of ``ROOT``) that carries the token."""
        pairs = enumerate(zip(self.parents, self.tokens, strict=True))
        return next((place for place, pair in pairs if pair == (node, token)), None)

    def with_node(self, token: int, parent: int) -> Tree:
        return Tree((*self.tokens, token), (*self.parents, parent))

    def mask(self, cached: int) -> Tensor:
        """(n + 1, cached + n + 1) bool: the root, then every node, sees the cache, the root, its ancestors, itself."""
        rows = len(self) + 1
        own = torch.eye(rows, dtype=torch.bool)
        own[:, 0] = True
        for node, parent in enumerate(self.parents):
            own[node + 1] |= own[parent + 1]
        return torch.cat([torch.ones(rows, cached, dtype=torch.bool), own], 1)


def tree_of(paths: Iterable[Sequence[int]], most: int = MOST_NODES) -> Tree:
    """The paths as one tree, equal beginnings shared; ends when ``most`` tokens are drafted."""
    tree = Tree()
    for path in paths:
        node = ROOT
        for token in path:
            child = tree.child(node, int(token))
            if child is None:
                if len(tree) == most:
                    return tree
                tree, child = tree.with_node(int(token), node), len(tree)
            node = child
    return tree


def check_shape(width: int, depth: int) -> None:
    """ValueError for a tree that is empty, or wider than its budget."""
    if width < 1 or depth < 1:
        raise ValueError(f"A tree {width} wide and {depth} deep drafts nothing; give at least 1 of both.")
    if width * depth > MOST_NODES:
        raise ValueError(
            f"A tree {width} wide and {depth} deep may have {width * depth} tokens, more than the {MOST_NODES} that "
            f"are verified at once; choose a width of at most {max(1, MOST_NODES // depth)} or a depth of at most "
            f"{max(1, MOST_NODES // width)}."
        )

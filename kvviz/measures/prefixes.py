"""What prompts have in common: common beginnings, the first token that differs, and the tree that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Tokens = Sequence[int]


def common_prefix(one: Tokens, other: Tokens) -> int:
    """How many tokens both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


@dataclass(frozen=True)
class Difference:
    """A prompt beside the earlier one that it shares most with: the first of those, where several share as much."""

    other: int  # the earlier prompt
    shared: int  # tokens that both begin with
    position: int | None  # of the first token that differs; None where one is the beginning of the other


def first_difference(prompts: Sequence[Tokens], place: int) -> Difference | None:
    """Of the prompt at ``place``; None for the first one."""
    if place == 0:
        return None
    shared = [common_prefix(prompts[place], other) for other in prompts[:place]]
    other = max(range(place), key=lambda index: (shared[index], -index))
    shortest = min(len(prompts[place]), len(prompts[other]))
    return Difference(other, shared[other], shared[other] if shared[other] < shortest else None)


@dataclass(frozen=True)
class Edge:
    """A run of tokens that the same prompts have in common, from ``start`` to before ``end``.

    ``row`` is where it stands in a picture: prompts that end in it one below another, edges among what follows them.
    """

    start: int
    end: int
    prompts: tuple[int, ...]
    parent: int | None  # the edge before it
    row: float


def radix_edges(prompts: Sequence[Tokens]) -> list[Edge]:
    """The prompts as a radix tree over tokens, parents before their children."""
    edges: list[Edge] = []
    rows = iter(range(len(prompts)))

    def grow(members: tuple[int, ...], start: int, parent: int | None) -> list[float]:
        """Edges of the prompts that are equal up to ``start``; their rows."""
        groups: dict[int, list[int]] = {}
        for place in members:
            if len(prompts[place]) > start:
                groups.setdefault(int(prompts[place][start]), []).append(place)
        found = [float(next(rows)) for place in members if len(prompts[place]) == start]
        for group in groups.values():
            first = prompts[group[0]]
            end = min([len(prompts[place]) for place in group] + [common_prefix(first, prompts[p]) for p in group[1:]])
            index = len(edges)
            edges.append(Edge(start, end, tuple(group), parent, 0.0))
            own = grow(tuple(group), end, index)
            edges[index] = Edge(start, end, tuple(group), parent, sum(own) / len(own))
            found.append(edges[index].row)
        return found

    grow(tuple(range(len(prompts))), 0, None)
    return edges

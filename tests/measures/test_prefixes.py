"""Common beginnings and the tree of prompts, against brute force."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from kvviz.measures.prefixes import Difference, common_prefix, first_difference, radix_edges

prompts = some.lists(some.lists(some.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=8)


@given(prompts)
def test_edges_spell_every_prompt(texts: list[list[int]]) -> None:
    edges = radix_edges(texts)
    for place, tokens in enumerate(texts):
        own = [edge for edge in edges if place in edge.prompts]
        covered = [position for edge in own for position in range(edge.start, edge.end)]
        assert sorted(covered) == list(range(len(tokens)))
    for index, edge in enumerate(edges):
        beginnings = {tuple(texts[place][: edge.end]) for place in edge.prompts}
        assert len(beginnings) == 1 and edge.start < edge.end
        assert (edge.parent is None) == (edge.start == 0)
        if edge.parent is not None:
            assert edges[edge.parent].end == edge.start and set(edge.prompts) <= set(edges[edge.parent].prompts)
            assert edge.parent < index
        others = [tokens for place, tokens in enumerate(texts) if place not in edge.prompts]
        assert all(tuple(tokens[: edge.end]) not in beginnings for tokens in others)


@given(prompts)
def test_the_first_difference_is_to_the_prompt_that_shares_most(texts: list[list[int]]) -> None:
    assert first_difference(texts, 0) is None
    for place in range(1, len(texts)):
        found = first_difference(texts, place)
        assert found is not None
        shared = []
        for other in texts[:place]:
            count = 0
            while count < min(len(texts[place]), len(other)) and texts[place][count] == other[count]:
                count += 1
            shared.append(count)
        assert found.shared == max(shared) and found.other == shared.index(max(shared))
        is_beginning = found.shared in (len(texts[place]), len(texts[found.other]))
        assert found.position == (None if is_beginning else found.shared)


def test_by_hand() -> None:
    assert common_prefix([1, 2, 3], [1, 2, 4]) == 2 and common_prefix([], [1]) == 0
    assert first_difference([[1, 2, 3], [1, 2, 3, 4]], 1) == Difference(0, 3, None)
    edges = radix_edges([[1, 2, 3], [1, 2, 4], [9]])
    assert [(edge.start, edge.end, edge.prompts, edge.parent, edge.row) for edge in edges] == [
        *((0, 2, (0, 1), None, 0.5), (2, 3, (0,), 0, 0.0), (2, 3, (1,), 0, 1.0), (0, 1, (2,), None, 2.0)),
    ]

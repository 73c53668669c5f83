"""Draft trees: what a row sees, equal beginnings shared, and what prompt lookup drafts, against naive loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from kvviz.analysis.drafts.drafters import looked_up
from kvviz.analysis.drafts.speculation import cut, walked
from kvviz.analysis.drafts.tree import MOST_NODES, ROOT, Tree, check_shape, tree_of

paths = some.lists(some.lists(some.integers(0, 3), min_size=1, max_size=5), max_size=6)


def ancestors(tree: Tree, node: int) -> list[int]:
    found = []
    while node != ROOT:
        found.append(node)
        node = tree.parents[node]
    return found


@given(paths, some.integers(0, 5))
def test_a_row_sees_the_cache_the_root_its_ancestors_and_itself(given_paths: list[list[int]], cached: int) -> None:
    tree = tree_of(given_paths)
    mask = tree.mask(cached)
    assert mask.shape == (len(tree) + 1, cached + len(tree) + 1)
    for row in range(len(tree) + 1):
        own = {0, *(node + 1 for node in ancestors(tree, row - 1))} if row else {0}
        assert {int(place) - cached for place in mask[row].nonzero()[:, 0] if place >= cached} == own
        assert mask[row, :cached].all()
        if row:
            assert tree.depths[row - 1] == len(ancestors(tree, row - 1))


@given(paths)
def test_every_path_is_in_the_tree_and_no_token_twice_under_one_parent(given_paths: list[list[int]]) -> None:
    tree = tree_of(given_paths)
    for path in given_paths:
        node: int | None = ROOT
        for token in path:
            assert node is not None
            node = tree.child(node, token)
        assert node is not None
    pairs = list(zip(tree.parents, tree.tokens, strict=True))
    assert len(set(pairs)) == len(pairs)
    assert len(tree) == len({tuple(path[:end]) for path in given_paths for end in range(1, len(path) + 1)})


@given(paths, some.data())
def test_the_accepted_path_is_the_likeliest_one(given_paths: list[list[int]], data: some.DataObject) -> None:
    tree = tree_of(given_paths)
    likeliest = data.draw(some.lists(some.integers(0, 3), min_size=len(tree) + 1, max_size=len(tree) + 1))
    accepted, written = walked(tree, likeliest)
    assert len(written) == len(accepted) + 1
    node = ROOT
    for place, token in enumerate(written):
        assert token == likeliest[node + 1]
        if place < len(accepted):
            assert tree.tokens[accepted[place]] == token and tree.parents[accepted[place]] == node
            node = accepted[place]
    assert tree.child(node, written[-1]) is None


def test_a_tree_ends_with_its_budget() -> None:
    assert len(tree_of([range(100)])) == MOST_NODES
    with pytest.raises(ValueError, match="after its parent"):
        Tree((1, 2), (1, ROOT))


@given(some.lists(some.integers(0, 2), min_size=1, max_size=14), some.integers(1, 3), some.integers(1, 4))
def test_lookup_against_a_naive_search(ids: list[int], width: int, depth: int) -> None:
    expected: list[list[int]] = []
    for size in (3, 2, 1):
        for start in reversed(range(len(ids))):
            end = start + size
            is_match = end < len(ids) and ids[start:end] == ids[len(ids) - size :]
            if is_match and ids[end : end + depth] not in expected and len(expected) < width:
                expected.append(ids[end : end + depth])
    assert looked_up(ids, width, depth) == tree_of(expected)


def test_lookup_by_hand() -> None:
    tree = looked_up([1, 2, 7, 8, 1, 2, 9, 1, 2], 2, 2)
    assert tree == Tree((9, 1, 7, 8), (ROOT, 0, ROOT, 2)) and tree.depths == (1, 2, 1, 2)
    assert len(looked_up([1, 2, 3], 2, 2)) == 0 == len(looked_up([1], 2, 2))
    assert tree.mask(1).int().tolist() == [
        *([1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0], [1, 1, 0, 0, 1, 1]),
    ]


def test_what_is_written_ends_at_the_limit_and_at_the_end_of_the_text() -> None:
    assert cut((1, 2, 3), 9, ()) == (1, 2, 3) and cut((1, 2, 3), 2, ()) == (1, 2) and cut((1, 2, 3), 9, (2,)) == (1, 2)


def test_trees_without_meaning_are_refused() -> None:
    for width, depth, words in ((0, 1, "drafts nothing"), (17, 4, "a width of at most 16 or a depth of at most 3")):
        with pytest.raises(ValueError, match=words):
            check_shape(width, depth)
    assert torch.equal(Tree().mask(2), torch.ones(1, 3, dtype=torch.bool))

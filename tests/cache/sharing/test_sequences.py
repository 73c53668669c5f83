"""The bookkeeping of shared blocks: by hand, against brute force, and random histories in which no block is lost."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kvviz.cache.sharing.pool import BlockPool, Full
from kvviz.cache.sharing.prefix_tree import PrefixTree
from kvviz.cache.sharing.sequences import Sequence, SharedBlocks

prompts = some.lists(some.lists(some.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=8)
sizes = some.integers(1, 5)


def shared_by_hand(one: list[int], other: list[int]) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


@given(prompts, sizes)
def test_hits_are_those_of_a_quadratic_comparison(texts: list[list[int]], size: int) -> None:
    server = SharedBlocks(size)
    for place, tokens in enumerate(texts):
        best = max((shared_by_hand(tokens, other) for other in texts[:place]), default=0)
        expected = min(best, len(tokens) - 1) // size * size
        assert server.open(tokens).hit_tokens == expected


@given(prompts, sizes, some.integers(3, 12))
def test_under_a_budget_hits_are_what_is_still_held(texts: list[list[int]], size: int, limit: int) -> None:
    """Brute force: the whole beginnings that the blocks themselves spell, block after block."""
    server = SharedBlocks(size, limit)
    for tokens in texts:
        held = {tuple(node.key for node in path_to(node)) for node in server.tree.nodes.values()}
        expected = 0
        while expected < (len(tokens) - 1) // size and key_of(tokens, expected + 1, size) in held:
            expected += 1
        try:
            sequence = server.open(tokens)
        except Full:
            assert -(-len(tokens) // size) > limit
            assert not any(block.references for block in server.pool.blocks.values())
            continue
        assert sequence.hit_tokens == expected * size
        server.close(sequence)
        assert len(server.pool.blocks) <= limit


def key_of(tokens: list[int], blocks: int, size: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(tokens[place * size : (place + 1) * size]) for place in range(blocks))


def path_to(node):  # type: ignore[no-untyped-def]
    found = []
    while node.parent is not None:
        found.insert(0, node)
        node = node.parent
    return found


class Histories(RuleBasedStateMachine):
    """Sequences opened, forked, written to and closed in any order, under a budget."""

    def __init__(self) -> None:
        super().__init__()
        self.server = SharedBlocks(3, 9)
        self.open: list[Sequence] = []

    @rule(tokens=some.lists(some.integers(0, 1), min_size=1, max_size=10))
    def open_one(self, tokens: list[int]) -> None:
        with contextlib.suppress(Full):
            self.open.append(self.server.open(tokens))

    @precondition(lambda self: self.open)
    @rule(data=some.data())
    def fork(self, data: some.DataObject) -> None:
        self.open.append(self.server.fork(data.draw(some.sampled_from(self.open))))

    @precondition(lambda self: self.open)
    @rule(data=some.data(), token=some.integers(0, 1))
    def append(self, data: some.DataObject, token: int) -> None:
        sequence = data.draw(some.sampled_from(self.open))
        before = [list(other.tokens) for other in self.open]
        try:
            self.server.append(sequence, token)
        except Full:
            assert [list(other.tokens) for other in self.open] == before

    @precondition(lambda self: self.open)
    @rule(data=some.data())
    def close(self, data: some.DataObject) -> None:
        sequence = data.draw(some.sampled_from(self.open))
        self.open = [one for one in self.open if one is not sequence]
        self.server.close(sequence)

    @invariant()
    def every_reference_is_held(self) -> None:
        counts = Counter(number for sequence in self.open for number in sequence.blocks)
        for number, block in self.server.pool.blocks.items():
            assert block.references == counts[number]
        assert set(counts) <= set(self.server.pool.blocks)

    @invariant()
    def blocks_spell_their_sequences(self) -> None:
        """What another sequence wrote into a shared block would show here."""
        for sequence in self.open:
            spelled = [token for number in sequence.blocks for token in self.server.pool.blocks[number].tokens]
            assert spelled == sequence.tokens

    @invariant()
    def no_block_is_lost(self) -> None:
        """A block is held by a sequence or by the tree; all other numbers are free."""
        pool = self.server.pool
        for number, block in pool.blocks.items():
            assert block.references or number in self.server.tree.nodes
        assert len(pool.blocks) <= 9 and not set(pool.freed) & set(pool.blocks)
        assert set(pool.freed) | set(pool.blocks) == set(range(len(pool.freed) + len(pool.blocks)))

    @invariant()
    def the_tree_holds_whole_blocks_under_their_beginnings(self) -> None:
        for number, node in self.server.tree.nodes.items():
            assert node.block == number and list(node.key) == self.server.pool.blocks[number].tokens
            assert len(node.key) == 3 and node.parent is not None and node.parent.children[node.key] is node


TestHistories = Histories.TestCase


def test_two_prompts_by_hand() -> None:
    server = SharedBlocks(2)
    first = server.open([1, 2, 3, 4, 5])
    assert first.blocks == [0, 1, 2] and first.hit_tokens == 0
    second = server.open([1, 2, 3, 9])
    assert second.blocks == [0, 3] and second.hit_tokens == 2
    assert [server.pool.blocks[number].references for number in range(4)] == [2, 1, 1, 1]
    server.close(first)  # its whole blocks stay in the tree, the part-filled one is free
    assert {number: block.references for number, block in server.pool.blocks.items()} == {0: 1, 1: 0, 3: 1}
    assert [event.kind for event in server.events] == [*["allocate"] * 3, "hit", "allocate", "free"]


def test_the_last_token_is_always_computed() -> None:
    server = SharedBlocks(2)
    server.open([1, 2, 3, 4])
    again = server.open([1, 2, 3, 4])
    assert again.hit_tokens == 2 and len(server.pool.blocks) == 3


def test_the_leaf_unused_longest_leaves_first() -> None:
    server = SharedBlocks(1, 4)
    for tokens in ([1, 2, 9], [1, 3, 9]):
        server.close(server.open(tokens))
    # held: 1, 2, 9 under it and 3; the second prompt took the place of nothing but free blocks
    server.close(server.open([1, 2, 9, 8]))
    assert [event.block for event in server.events if event.kind == "evict"]
    assert server.tree.match([1, 2, 9, 8], 9)[-1].key == (8,)


def test_a_shared_block_is_copied_before_it_is_written_to() -> None:
    server = SharedBlocks(4)
    first = server.open([1, 2, 3, 4, 5])
    second = server.fork(first)
    assert first.blocks == second.blocks == [0, 1] and server.pool.blocks[1].references == 2
    server.append(second, 7)
    assert second.blocks == [0, 2] and server.pool.blocks[1].tokens == [5] and server.pool.blocks[2].tokens == [5, 7]
    assert (server.events[-1].kind, server.events[-1].source) == ("copy", 1)
    server.append(first, 6)
    assert first.blocks == [0, 1] and server.events[-1].kind == "copy"  # nobody else held it any more


def test_a_failed_attempt_leaves_no_hits_without_entries() -> None:
    server = SharedBlocks(2, 2)
    held = server.open([1, 2])
    with pytest.raises(Full):
        server.open([5, 6, 7, 8])
    assert not server.tree.match([5, 6, 7, 8], 2) and list(server.pool.blocks) == held.blocks


def test_what_is_held_cannot_be_freed_and_a_parent_cannot_leave() -> None:
    pool = BlockPool(2, 1)
    pool.allocate().references = 1
    with pytest.raises(ValueError, match="still held by 1"):
        pool.free(0)
    with pytest.raises(Full):
        pool.allocate()
    tree = PrefixTree(1)
    parent = tree.insert(tree.root, (1,), 0)
    assert parent is not None and tree.insert(parent, (2,), 1) is not None and tree.insert(tree.root, (1,), 5) is None
    with pytest.raises(ValueError, match="Only a leaf"):
        tree.remove(parent)

"""The sources' own small examples, counted from 1 as printed there (claims 03, 04, 13 and 36)."""

from __future__ import annotations

import torch

from kvviz.eviction.by_entry import EntryEviction
from kvviz.eviction.schedule import RunContext
from kvviz.policies import parse_policy


def held_after(policy: str, tokens: int) -> list[list[int]]:
    """Positions counted from 1 that the cache holds after each token."""
    eviction = EntryEviction(parse_policy(policy), [None], RunContext(1, 1, 1, torch.device("cpu")))
    held = []
    for start in range(tokens):
        eviction.begin(start, 1)
        held.append((eviction.groups[0].positions[0, 0] + 1).tolist())
    return held


def test_a_window_of_four_moves_one_token_at_a_time() -> None:
    held = held_after("window:budget=4", 10)
    assert held[7 - 1] == [4, 5, 6, 7]
    assert held[8 - 1] == [5, 6, 7, 8]
    assert held[9 - 1] == [6, 7, 8, 9]
    assert held[10 - 1] == [7, 8, 9, 10]


def test_four_sinks_and_four_recent_tokens() -> None:
    assert held_after("streaming:budget=8,sinks=4", 12)[12 - 1] == [1, 2, 3, 4, 9, 10, 11, 12]


def test_the_ring_holds_position_i_in_slot_i_mod_w() -> None:
    """Known fault 148: a ring overwrites the wrong slot."""
    for step, held in enumerate(held_after("rolling:budget=3", 9)):
        ring = {(position - 1) % 3: position for position in held}
        assert len(ring) == min(3, step + 1)  # no two held tokens share a slot
        assert ring[step % 3] == step + 1  # the newcomer overwrote what was there


def test_streaming_without_sinks_is_the_window() -> None:
    assert held_after("streaming:budget=4,sinks=0", 12) == held_after("window:budget=4", 12)

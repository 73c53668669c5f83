"""Why a held token is held, as the pages colour it."""

from __future__ import annotations

import pytest

from kvviz.figures.theme import HELD_CODES
from kvviz.policies import POLICIES, parse_policy
from tests.policies.test_matrix import sized


@pytest.mark.parametrize(
    ("policy", "position", "newest", "role"),
    [
        ("full", 3, 9, "other"),
        ("window:budget=4", 8, 9, "recent"),
        ("streaming:budget=8,sinks=2", 1, 9, "sink"),
        ("streaming:budget=8,sinks=2", 2, 9, "recent"),
        ("h2o:budget=8,recent=3,sinks=1", 0, 9, "sink"),
        ("h2o:budget=8,recent=3", 6, 9, "heavy"),
        ("h2o:budget=8,recent=3", 7, 9, "recent"),
        ("tova:budget=4", 8, 9, "other"),
        ("random:budget=4", 2, 9, "other"),
        ("snapkv:budget=4,observe=2", 1, 3, "other"),  # the prompt of 6 is still being read
        ("snapkv:budget=4,observe=2", 1, 7, "heavy"),
        ("snapkv:budget=4,observe=2", 4, 7, "window"),
        ("snapkv:budget=4,observe=2", 6, 7, "recent"),
        ("snapkv:budget=64,observe=2", 1, 7, "other"),
    ],
)
def test_roles_by_hand(policy: str, position: int, newest: int, role: str) -> None:
    assert parse_policy(policy).role_of(position, newest, 6) == role


ROLES = {
    "full": {"other"},
    "window": {"recent"},
    "rolling": {"recent"},
    "streaming": {"sink", "recent"},
    "h2o": {"sink", "heavy", "recent"},
    "attention_window": {"heavy", "recent"},
    "tova": {"other", "recent"},
    "snapkv": {"heavy", "window", "recent"},
    "pyramidkv": {"heavy", "window", "recent"},
    "knorm": {"other", "recent"},
    "keydiff": {"other", "recent"},
    "lagkv": {"sink", "other", "recent"},
    "random": {"other", "recent"},
    "recompute": {"recent"},
}


@pytest.mark.parametrize("name", list(POLICIES))
def test_every_role_is_met_and_has_a_colour(name: str) -> None:
    """With budgets small enough that something has been chosen: a prompt of 20, 31 tokens."""
    roles = {sized(name, 10).role_of(position, 30, 20) for position in range(31)}
    assert roles == ROLES[name]
    assert roles <= set(HELD_CODES)

"""When a policy decides about the newest token: two strategies, which every evicting loop follows alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """``delay`` is how many rows still see what leaves: 0 = already the newest token's own does not, 1 = it still does.

    So token j that leaves for token t is last seen by query t − 1 + delay, and t − 1 + delay rows of attention are
    known when that is decided.
    """

    delay: int

    def around(self, first: int, evict: Callable[[int], None], attend: Callable[[], int]) -> None:
        """Run the rows from ``first`` on: ``evict`` takes a row, ``attend`` answers the last row that attended."""
        raise NotImplementedError


@dataclass(frozen=True)
class DecideBefore(Timing):
    """The token is appended, the policy decides, then the token attends to what is left."""

    delay: int = 0

    def around(self, first: int, evict: Callable[[int], None], attend: Callable[[], int]) -> None:
        evict(first)
        attend()


@dataclass(frozen=True)
class DecideAfter(Timing):
    """The token is appended and attends; then the policy decides, that token's attention in sight."""

    delay: int = 1

    def around(self, first: int, evict: Callable[[int], None], attend: Callable[[], int]) -> None:
        evict(attend())


BEFORE, AFTER = DecideBefore(), DecideAfter()

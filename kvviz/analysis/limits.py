"""Down to which budget a policy still works: from the largest budget downwards until it fails for the first time."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def smallest_that_works(budgets: Sequence[int], works: Callable[[int], bool]) -> int | None:
    """The smallest budget at which it works, and works at all larger ones too; None where it fails at the largest.

    Asked from the largest downwards, and no further than the first failure.
    """
    found = None
    for budget in sorted(budgets, reverse=True):
        if not works(budget):
            break
        found = budget
    return found

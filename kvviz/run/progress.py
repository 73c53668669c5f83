"""How far some work is, and whether anybody still wants it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float], None]


class Cancelled(Exception):
    """A run was asked to stop; nothing of it is kept."""


class Watch:
    """Passes on how far the work is, and stops it with ``Cancelled`` when it is no longer wanted."""

    def __init__(self, progress: Progress | None, is_cancelled: Callable[[], bool] | None) -> None:
        self.progress, self.is_cancelled = progress, is_cancelled

    def tell(self, share: float) -> None:
        """The work is this far, from 0 to 1."""
        if self.is_cancelled is not None and self.is_cancelled():
            raise Cancelled
        if self.progress is not None:
            self.progress(min(1.0, share))

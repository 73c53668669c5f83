"""Importing torch and transformers, which takes seconds."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection inside: an import makes a million objects that stay, and looking through them again and
    again takes a quarter of its time (6.1 s became 4.1 to 5.1 s on two cores)."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

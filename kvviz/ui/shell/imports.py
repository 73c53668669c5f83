"""Importing torch and transformers, which takes seconds."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

APPEAR_SECONDS = 1.5  # what a browser takes for the settings of its first page
SETTINGS_SENT = threading.Event()


def settings_sent() -> None:
    """A page has sent its settings to the browser."""
    SETTINGS_SENT.set()


def let_settings_appear() -> None:
    """Before torch is there: its import takes a core and Python's lock for seconds, and the browser wants both."""
    if SETTINGS_SENT.is_set() and "torch" not in sys.modules:
        time.sleep(APPEAR_SECONDS)


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

"""Figures drawn before. A figure is a pure function of its arguments, so equal arguments give the drawing kept."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec

import numpy as np

from kvviz.figures import Drawing

KEPT = 64  # figures, of about half a megabyte each
BYTES_LIMIT = 200 * 2**20  # of the arrays behind them, which they keep alive; a map of 2048 tokens is 17 MB
Arguments = ParamSpec("Arguments")
_drawings: OrderedDict[Hashable, Drawing] = OrderedDict()
_lock = threading.Lock()


def drawn(figure: Callable[Arguments, Drawing], *given: Arguments.args, **named: Arguments.kwargs) -> Drawing:
    """``figure(*given, **named)``, from memory if it was drawn before; nobody may change it, nor its arguments."""
    key = (figure, frozen(given), frozen(named))
    with _lock:
        if key in _drawings:
            _drawings.move_to_end(key)
            return _drawings[key]
    new = figure(*given, **named)
    with _lock:
        _drawings[key] = new
        while len(_drawings) > KEPT or (len(_drawings) > 1 and bytes_kept() > BYTES_LIMIT):
            _drawings.popitem(last=False)
    return new


def bytes_kept() -> int:
    return sum(drawing.table.nbytes for drawing in _drawings.values())


def frozen(value: Any) -> Hashable:
    """Something small to compare arguments by; an array is known by its shape, type and a hash of its bytes."""
    if isinstance(value, np.ndarray):
        digest = hashlib.blake2b(np.ascontiguousarray(value).data, digest_size=16).digest()
        return (value.shape, value.dtype.str, digest)
    if isinstance(value, (list, tuple)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((name, frozen(part)) for name, part in value.items())
    return value

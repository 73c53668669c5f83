"""What the parts of the Quality page share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kvviz.run.trace import Trace


@dataclass(frozen=True)
class Result:
    """A result for the worker to keep: it must say how large it is."""

    value: object
    bytes: int = 10_000


def late_loss(trace: Trace) -> float:
    """Mean loss of the tokens after the prompt, in nats."""
    return float(np.nanmean(trace.nll[trace.prompt_tokens - 1 :]))


def has_losses(trace: Trace) -> bool:
    """Whether any token comes after the prompt and was computed."""
    return bool(np.isfinite(trace.nll[trace.prompt_tokens - 1 :]).any())

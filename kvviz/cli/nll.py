"""``python -m kvviz nll``: how well the model predicts a text under a setup."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from kvviz.cli.replayed import add_options as add_options
from kvviz.cli.replayed import replayed

ABOUT = "how well the model predicts a text under a setup"


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    trace = replayed(arguments, check_scored)
    first = max(1, arguments.score_from)  # token 0 has no loss, nothing predicts it
    scored = trace.nll[first - 1 :]
    if np.isnan(scored).all():
        raise ValueError("None of the scored tokens was computed; choose a smaller --score-from or fewer --tokens.")
    mean = float(np.nanmean(scored))
    return {
        "policy": trace.setup.words()["policy"],
        "tokens": trace.tokens,
        "prompt_tokens": trace.prompt_tokens,
        "score_from": first,
        "nll": mean,
        "ppl": math.exp(mean),
        "nll_per_token": [None if loss != loss else loss for loss in trace.nll.tolist()],
        "seconds": trace.seconds,
        "cache_bytes": trace.cache_bytes,
    }


def check_scored(arguments: argparse.Namespace, tokens: int) -> None:
    """Refuse numbers that leave no loss to take the mean of."""
    if tokens < 2:
        raise ValueError("One token has no loss, because nothing predicts it; give at least two tokens.")
    if arguments.score_from >= tokens:
        raise ValueError(
            f"--score-from {arguments.score_from} must be from 0 to {tokens - 1}, the last of {tokens} tokens."
        )

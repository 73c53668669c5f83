"""``python -m kvviz attention``: sink mass, entropy and mean distance of every layer and query head."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from kvviz.cli import replayed as common
from kvviz.cli.options import whole
from kvviz.cli.replayed import replayed
from kvviz.measures.attention import MEASURES
from kvviz.measures.sinks import SINKS

NAMES = ("sink_mass", "entropy", "mean_distance")
ABOUT = "of every layer and query head: " + ", ".join(f"{name} ({MEASURES[name].unit})" for name in NAMES)


def add_options(command: argparse.ArgumentParser) -> None:
    common.add_options(command)
    command.add_argument("--sinks", type=whole, default=SINKS, metavar="S", help="first positions counted as sinks")


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    trace = replayed(arguments, check_late, measure=True, sinks=arguments.sinks)
    late = slice(trace.prompt_tokens, None)
    return {name: np.nanmean(trace.measures[name][..., late], -1).tolist() for name in NAMES}


def check_late(arguments: argparse.Namespace, tokens: int) -> None:
    """Refuse numbers that leave no query to take the mean over."""
    if tokens == 1 or arguments.prompt_tokens == tokens:
        raise ValueError(
            "No query follows the prompt: give two tokens or more, and --prompt-tokens below their number."
        )

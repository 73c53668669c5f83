"""``python -m kvviz policies``: every policy with its knobs and its source."""

from __future__ import annotations

import argparse
from typing import Any

from kvviz.knobs import Choice, describe_knobs
from kvviz.policies import POLICIES

ABOUT = "list the policies with their knobs and sources"


def add_options(command: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def answer(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    return [describe(cls) for cls in POLICIES.values()]


def describe(cls: type[Choice]) -> dict[str, Any]:
    return {"name": cls.name(), "title": cls.title, "source": cls.source, "knobs": describe_knobs(cls)}

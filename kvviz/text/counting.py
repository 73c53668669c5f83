"""Counts in plain words."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """``1 token``, ``2 tokens``, ``3 entries``."""
    many = noun[:-1] + "ies" if noun.endswith(("ry", "ty")) else noun + "s"
    return f"{count:,} {noun if count == 1 else many}"

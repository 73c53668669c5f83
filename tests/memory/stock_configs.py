"""Whole tiny configs of real families, as transformers writes them, and what may happen to their fields."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from benchmarks.tiny_zoo import tiny_config

ALWAYS = {"model_type", "architectures", "transformers_version", "dtype"}


def whole_config(family: str) -> dict[str, Any]:
    """Every field of the family's tiny config; empty where its class cannot be made so small."""
    try:
        whole: dict[str, Any] = json.loads(tiny_config(family).to_json_string(use_diff=False))
        return whole
    except Exception:  # each class has checks of its own
        return {}


def text_of(config: dict[str, Any]) -> dict[str, Any]:
    part = config.get("text_config")
    return part if isinstance(part, dict) else config


def changed(config: dict[str, Any], draw: Random) -> dict[str, Any]:
    """The same with some fields dropped, and one of the numbers made null, zero, one or twice as large."""
    copy = json.loads(json.dumps(config))
    part = text_of(copy)
    kept = draw.choice((0.2, 0.5, 0.8, 0.95))
    lists_go = draw.random() < 0.5
    for name in sorted(set(part) - ALWAYS):
        if draw.random() > kept or (lists_go and isinstance(part[name], list)):
            del part[name]
    numbers = sorted(name for name, value in part.items() if type(value) is int)
    if numbers and draw.random() < 0.4:
        name = draw.choice(numbers)
        part[name] = draw.choice((None, 0, 1, 2 * part[name]))
    return copy

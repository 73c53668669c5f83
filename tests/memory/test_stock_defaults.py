"""What a config leaves out: counted as transformers' config class has it, or refused."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from benchmarks.stock_defaults import fields_of, habit_of, ignored
from kvviz.memory import Ask, account
from kvviz.memory.config import shape_of
from kvviz.memory.stock import table
from tests.memory.stock_configs import changed, whole_config

FAMILIES = sorted(table()["families"]) + sorted(table()["texts"])
LENGTHS = (3, 20)


def counted(config: Any) -> list[int] | None:
    """Bytes below and above the tiny windows; None where the config is refused, in one sentence."""
    try:
        shape = shape_of(config, "tiny")
        return [account(shape, Ask(tokens)).bytes for tokens in LENGTHS]
    except ValueError as error:
        assert str(error).endswith(".") and "\n" not in str(error) and len(str(error)) < 600, config
        return None


def as_stock(config: dict[str, Any]) -> dict[str, Any] | None:
    """The whole config that the class makes of it; None where the class itself refuses."""
    try:
        made = CONFIG_MAPPING[config["model_type"]].from_dict(json.loads(json.dumps(config)))
        whole: dict[str, Any] = json.loads(made.to_json_string(use_diff=False))
        return whole
    except Exception:  # each class has checks of its own
        return None


def test_a_field_that_is_left_out_never_changes_the_count_silently() -> None:
    """Gemma without a head size, Mistral without a window and Voxtral without KV heads were counted by common rules."""
    draw, found = Random(0), Counter[str]()
    for family in FAMILIES[::4]:  # each of them, many times over, took 65 seconds and held
        whole = whole_config(family)
        for config in [changed(whole, draw) for _ in range(3)] if whole else []:
            ours, stock = counted(config), as_stock(config)
            if ours is not None and stock is not None:
                assert ours == counted(stock), f"{family}: {json.dumps(config)}"
            found["refused" if ours is None else "same" if stock else "class refuses"] += 1
    assert found["same"] > 80 and found["refused"] > 30


@pytest.mark.parametrize("family", ["gemma2", "gemma4_text", "qwen3_next", "minicpm3", "beam", "dbrx", "bert"])
def test_the_table_is_that_of_the_installed_transformers(family: str) -> None:
    """``python -m benchmarks.stock_defaults`` writes it anew."""
    assert table()["families"][family] == {"fields": fields_of(family), **ignored(family), **habit_of(family)}

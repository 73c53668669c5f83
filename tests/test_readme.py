"""README names every choice there is: policies with their knobs, patterns, storages, commands and their options."""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path

import pytest

from kvviz.choices.patterns import PATTERNS
from kvviz.choices.storage import STORAGES
from kvviz.cli.main import COMMANDS, build_parser
from kvviz.knobs import Choice
from kvviz.memory.formats import ALL_STORAGES
from kvviz.policies import POLICIES

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("cls", [*POLICIES.values(), *PATTERNS.values(), *STORAGES.values()], ids=lambda c: c.name())
def test_every_choice_is_listed_with_its_knobs(cls: type[Choice]) -> None:
    knobs = [field.name for field in dataclasses.fields(cls)]
    assert f"`{cls.name()}{':' + ','.join(knobs) if knobs else ''}`" in README


def test_every_storage_of_the_memory_command_is_named() -> None:
    assert all(re.search(rf"\b{name}\b", README) for name in ALL_STORAGES)


def options(name: str) -> list[str]:
    menu = next(a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return [word for action in menu.choices[name]._actions for word in action.option_strings if word.startswith("--")]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_and_each_of_its_options_is_listed(name: str) -> None:
    assert f"python -m kvviz {name}" in README
    assert [word for word in options(name) if f"`{word}`" not in README] == []

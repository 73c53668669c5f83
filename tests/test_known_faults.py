"""The list of known faults and the tests that cite them name each other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
LIST = HERE.parent / "docs" / "known_faults.md"
CITED = re.compile(r"Known faults? (\d+(?:(?:, | and )\d+)*)")


def cited() -> set[tuple[int, str]]:
    """Every number in a test's docstring, with the test."""
    found = set()
    for path in HERE.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                name = f"{path.relative_to(HERE).with_suffix('').as_posix()}::{node.name}"
                numbers = CITED.findall(ast.get_docstring(node) or "")
                found |= {(int(number), name) for group in numbers for number in re.findall(r"\d+", group)}
    return found


def listed() -> set[tuple[int, str]]:
    lines = re.findall(r"^- \*\*(\d+)\*\* (.*)$", LIST.read_text(encoding="utf-8"), re.MULTILINE)
    return {(int(number), name) for number, line in lines for name in re.findall(r"`([^`]+)`", line)}


def test_every_fault_that_a_test_cites_is_listed_with_it_and_no_other() -> None:
    assert len(cited()) > 80 and cited() == listed()


def test_every_fault_is_said_once_and_in_order() -> None:
    numbers = [
        int(number) for number in re.findall(r"^- \*\*(\d+)\*\*", LIST.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert numbers == sorted(set(numbers)) and set(numbers) == {number for number, _ in listed()}

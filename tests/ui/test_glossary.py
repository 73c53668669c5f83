"""The glossary: one sentence a word, and a word for every tooltip."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kvviz.choices.setup import SETUP_PARSERS
from kvviz.measures.attention import MEASURES
from kvviz.text.prose import prose
from kvviz.ui.shell.glossary import KNOBS, glossary, knob_meaning, meaning

ROOT = Path(__file__).parent.parent.parent
SOURCES = [ROOT / "app.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "kvviz" / "ui").rglob("*.py")]


def asked_for(path: Path) -> set[str]:
    """The words that a file asks the meaning of, where they are written out."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "meaning"]
    return {part.value for call in names for part in call.args if isinstance(part, ast.Constant)}


def test_every_line_is_an_entry_and_no_word_has_two() -> None:
    lines = [line for line in prose("glossary").splitlines() if line]
    assert len(lines) == len(glossary()) and all(said.endswith(".") for said in glossary().values())


def test_every_word_is_used_and_every_used_word_is_there() -> None:
    used = set().union(*map(asked_for, SOURCES))
    used |= {*SETUP_PARSERS, *KNOBS.values(), *(name.replace("_", " ") for name in MEASURES)}
    assert used == set(glossary())


def test_a_tooltip_names_its_words() -> None:
    assert meaning("sink").startswith("**Sink**: One of the first tokens")
    assert meaning("query head", "KV head").count("**") == 4
    assert knob_meaning("budget") == meaning("budget") and knob_meaning("seed") is None
    with pytest.raises(KeyError):
        meaning("glasses")

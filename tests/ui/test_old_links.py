"""Links made before the code moved into rooms still mean the same: ten of them, written down before the move."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from kvviz.ui.shell.state import view_from_query

LINKS = json.loads((Path(__file__).parent / "data" / "old_links.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link["query"][:40])
def test_an_old_link_means_what_it_meant(link: dict[str, Any]) -> None:
    view, notes = view_from_query(dict(parse_qsl(link["query"])))
    assert view.words() == link["words"]
    # the lists of choices at the end of a sentence grow with the choices
    assert [start(note) for note in notes] == [start(note) for note in link["notes"]]


def start(note: str) -> str:
    return note.partition("he choices are")[0]


def test_there_are_ten() -> None:
    assert len(LINKS) == 10

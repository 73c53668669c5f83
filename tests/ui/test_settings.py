"""Pages say what they have of their own; the shell takes it from the one table and knows no page by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from kvviz.choices.words import number_parser
from kvviz.ui.pages import PAGES
from kvviz.ui.shell.settings import (
    Example,
    PageEntry,
    PageSettings,
    linked,
    links,
    register,
    registered,
    settings_of_pages,
)
from kvviz.ui.shell.state import View, view_from_query, widget_values
from kvviz.ui.start.questions import QUESTIONS, Question

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = [(entry.title, example) for entry in PAGES for example in entry.examples]
TITLES = {entry.title for entry in PAGES}


@dataclass(frozen=True)
class NewSettings(PageSettings):
    """What a page added tomorrow might have."""

    always: int = linked("new_always", 3, number_parser("new_always", 1, 9), always=True)
    seldom: int | None = linked("new_seldom", None, number_parser("new_seldom", 1, 9))


def test_the_table_names_every_script_once() -> None:
    """Known fault 150: a page can be reached from some places only."""
    scripts = ["app.py", *sorted(f"pages/{path.name}" for path in (ROOT / "pages").glob("*.py"))]
    assert sorted(entry.path for entry in PAGES) == scripts
    assert registered() == PAGES


def test_no_two_settings_share_a_word_of_the_url() -> None:
    words = [link.word for page in (View, *settings_of_pages()) for link in links(page)]
    words += View().experiment.query()
    assert len(words) == len(set(words))


def test_a_new_page_needs_its_folder_and_one_row() -> None:
    try:
        register([*PAGES, PageEntry("Weigh", "pages/9_New.py", "New", NewSettings)])
        view, notes = view_from_query({"new_always": "5", "new_seldom": "x"})
        assert view.of(NewSettings) == NewSettings(5) and len(notes) == 1 and "new_seldom" in notes[0]
        assert view.words()["new_always"] == "5" and "new_seldom" not in view.words()
        assert View().words()["new_always"] == "3" and widget_values(view)["new_always"] == 5
    finally:
        register(PAGES)
    assert "new_always" not in View().words()


def test_what_widgets_hold_becomes_settings() -> None:
    held = {"new_always": 4.0, "new_seldom": 2.5}
    assert NewSettings.from_widgets(lambda key, default: held.get(key, default)) == NewSettings(4, None)


@pytest.mark.parametrize(("page", "example"), EXAMPLES, ids=[example.label for _, example in EXAMPLES])
def test_an_example_is_a_link_that_holds(page: str, example: Example) -> None:
    view, notes = view_from_query(example.change)
    assert not notes and example.label and example.watch.endswith((".", "!", "?"))
    written = view.words()
    again = {name: word for name, word in written.items() if name in example.change}
    assert view_from_query({**example.change, **again}) == (view, [])
    ordinary = View().words()
    assert any(written.get(name) != ordinary.get(name) for name in example.change), page


@pytest.mark.parametrize("question", QUESTIONS, ids=[question.label for question in QUESTIONS])
def test_a_question_leads_to_a_page_and_its_link_holds(question: Question) -> None:
    assert question.page in TITLES and view_from_query(question.change)[1] == []

"""Examples: what to watch is said of the one that is shown, however it came to be shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvviz.choices.linked_text import Text
from kvviz.ui.pages import PAGES
from kvviz.ui.shell.examples import INVITATION, changed, is_shown, watch_words
from kvviz.ui.shell.state import View

ROWS = [entry for entry in PAGES if entry.examples]


def test_every_page_has_examples() -> None:
    assert [entry.title for entry in ROWS] == [entry.title for entry in PAGES]


@pytest.mark.parametrize("entry", ROWS, ids=lambda entry: entry.title)
def test_what_to_watch_stands_there_once_an_example_is_pressed(entry) -> None:
    """It stood at the end of the page, thousands of pixels below the figure that changed."""
    view = View()
    for one in entry.examples:
        view = changed(view, one.change)
        shown = [other for other in entry.examples if is_shown(view, other)]
        assert one in shown and watch_words(view, entry.examples).startswith("**")
        assert one.label in watch_words(view, [one]).replace("\\", "")


def test_a_setting_of_ones_own_ends_the_example() -> None:
    cache = next(entry.examples for entry in ROWS if entry.title == "Cache")
    view = changed(View(), cache[0].change)
    assert watch_words(changed(view, {"tokens": "11"}), cache) == INVITATION
    memory = next(entry.examples for entry in ROWS if entry.title == "Memory")
    ordinary = changed(View(), memory[1].change)
    own_text = replace(view, experiment=replace(view.experiment, text=Text("one two three")))
    assert watch_words(own_text, cache) == INVITATION
    assert is_shown(ordinary, memory[1]) and not is_shown(changed(ordinary, {"mem_gpus": "2"}), memory[1])

"""The menu of a figure's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import streamlit as st

from kvviz.figures import Table
from kvviz.figures.drawing import matrix_table
from kvviz.ui.shell import chart
from kvviz.ui.shell.chart import COLUMNS, ROWS, numbers, preview, rest_words

SMALL = Table(("token", "evicted_at"), (["0 <b>", "1 a|b"], [3, 4]))


def test_a_small_table_is_shown_whole_and_tokens_stay_text() -> None:
    assert preview(SMALL) == "| token | evicted\\_at |\n| --: | --: |\n| 0 \\<b\\> | 3 |\n| 1 a\\|b | 4 |"
    assert rest_words(SMALL) == ""


def test_of_a_large_one_the_first_rows_and_columns_are_shown_and_it_says_so() -> None:
    names = [str(place) for place in range(40)]
    large = matrix_table("query", names, names, np.zeros((40, 40)))
    lines = preview(large).splitlines()
    assert len(lines) == 2 + ROWS and all(line.count("|") == COLUMNS + 1 for line in lines)
    assert rest_words(large).startswith(f"The first {ROWS} of 40 rows and {COLUMNS} of 41 columns")


def test_every_button_names_its_figure_and_a_download_does_not_run_the_page_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every button was called "Download as CSV", and a second download right after a first was lost."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    monkeypatch.setattr(chart.st, "download_button", lambda *given, **named: calls.append((given, named)))
    numbers(SMALL, "lifetimes-A")
    ((label, data), looks) = calls[0][0], calls[0][1]
    assert label == "Download lifetimes A as CSV" and looks["on_click"] == "ignore"
    assert looks["file_name"] == "kvviz-lifetimes-A.csv" and data() == SMALL.file()
    assert chart.st is st

"""Setups in words, and the one list of choices that sidebar, widgets and words are made from."""

from __future__ import annotations

from dataclasses import fields

import pytest

from kvviz.choices.setup import SETUP_PARSERS, Setup, parse_setup
from kvviz.ui.shell.examples import dropped_by
from kvviz.ui.shell.menus import MENUS
from kvviz.ui.shell.state import View, widget_values
from kvviz.ui.shell.words import setup_words


def test_every_choice_has_its_menu() -> None:
    assert list(MENUS) == list(SETUP_PARSERS) == [field.name for field in fields(Setup)]
    for kind, (_, offered) in MENUS.items():
        for name in offered:
            assert parse_setup({kind: name})


def test_every_choice_has_its_widget_on_both_sides() -> None:
    values = widget_values(View())
    assert {f"{side}.{kind}" for side in "ab" for kind in SETUP_PARSERS} <= set(values)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "Full cache"),
        ({"policy": "streaming:budget=64,sinks=4"}, "StreamingLLM, budget 64, sinks 4"),
        ({"pattern": "sliding:window=8"}, "Full cache · pattern Sliding window, window 8"),
        ({"positions": "slot"}, "Full cache · slot positions"),
        ({"storage": "int4"}, "Full cache · storage int4, group 32, residual 32"),
        ({"softmax": "off_by_one"}, "Full cache · off-by-one softmax"),
    ],
)
def test_a_setup_in_words_names_what_differs(words: dict[str, str], said: str) -> None:
    assert setup_words(parse_setup(words)) == said


def test_a_new_policy_drops_the_other_choices_of_its_side() -> None:
    assert dropped_by({"b_policy": "full", "tokens": "9"}) == {f"b_{k}" for k in SETUP_PARSERS if k != "policy"}

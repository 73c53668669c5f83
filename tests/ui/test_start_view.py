"""Sentences of the landing page, on a tiny model."""

from __future__ import annotations

from kvviz.choices.setup import parse_setup
from kvviz.run.replay import replay
from kvviz.text.prose import prose
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
from kvviz.ui.start.view import cards, computed_words, headline
from tests.tiny import some_ids, tiny


def run_of(policy: str) -> Run:
    ids = some_ids(40).tolist()
    return Run(replay(tiny("llama"), ids, parse_setup({"policy": policy}), prompt_tokens=30), [], [], 0, ())


FULL, WINDOW, SNAPKV = map(run_of, ("full", "window:budget=9", "snapkv:budget=8,observe=4"))


def test_what_was_held_at_most_and_what_at_the_end() -> None:
    """SnapKV holds the whole prompt until its end; the headline gave what was left as the most ever held."""
    assert int(SNAPKV.trace.entries().max()) == 29 and int(SNAPKV.trace.entries()[..., -1].max()) == 18
    assert "read 40 tokens and held at most 29 of them, 18 at the end: 55% less cache than" in headline(SNAPKV, FULL)
    assert "at the end" in headline(SNAPKV, FULL).split("cache than")[1]
    assert "read 40 tokens and held at most 9 of them: 78% less cache than Full cache, " in headline(WINDOW, FULL)
    assert [card[1] for card in (cards(SNAPKV, FULL)[0], cards(WINDOW, FULL)[0])] == ["18 of 40", "9 of 40"]


def test_nothing_is_said_to_be_computed_before_it_is() -> None:
    """While a run was under way the page said that everything below had just been computed."""
    assert "computed" not in prose("start")
    said = computed_words(View(), WINDOW, FULL)
    assert f"under A in {WINDOW.trace.seconds:.2g} s and B in {FULL.trace.seconds:.2g} s" in said

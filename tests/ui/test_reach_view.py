"""Sentences of the Receptive field page, on shares made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kvviz.analysis.influence import Influence
from kvviz.choices.setup import parse_setup
from kvviz.run.replay import replay
from kvviz.ui.receptive_field.runs import Pair, Seen
from kvviz.ui.receptive_field.settings import ReachSettings
from kvviz.ui.receptive_field.view import distance_words, headline, path_words, place_notes, source_of
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View
from tests.tiny import some_ids, tiny

NAMES = [str(position) for position in range(8)]
RUN = Run(replay(tiny("llama"), some_ids(8).tolist(), parse_setup({"policy": "window:budget=3"})), NAMES, NAMES, 0, ())
QUERY = 5
# through two layers of window 3 position 5 depends on 1 to 5, and sees 3 to 5 itself
GRADIENT = np.array([[0, 0.05, 0.05, 0.1, 0.2, 0.6]])
ROLLOUT = np.array([[0, 0.3, 0.3, 0.2, 0.1, 0.1]])
INSIDE = np.array([False, True, True, True, True, True])
CONE = np.stack([INSIDE, np.arange(6) > 2, np.arange(6) == 5])[None]
FOUND = Influence(
    query=QUERY,
    depths=(2,),
    gradient=GRADIENT,
    rollout=ROLLOUT,
    levels=np.zeros((1, 3, 6)),
    came_from=np.zeros((1, 2, 6), dtype=int),
    strength=np.where(INSIDE, 0.0, -np.inf)[None],
    sublayers={},
)
SEEN = Seen(FOUND, CONE, (), ())


@pytest.mark.parametrize(("by", "near"), [("gradient", 5), ("rollout", 5)])
def test_the_headline_has_the_shares_that_are_shown(by: str, near: int) -> None:
    """With attention rollout chosen, the headline still gave the number of the gradient."""
    sharper = Seen(replace(FOUND, gradient=np.array([[0, 0, 0, 0, 0, 1.0]])), CONE, (), ())
    name = {"gradient": "gradient", "rollout": "attention rollout"}[by]
    said = headline(RUN, sharper, QUERY, 2, by)
    expected = "itself" if by == "gradient" else f"the nearest {near}"
    assert f"99% of the influence by {name} comes from {expected} (policy A" in said


def test_so_have_the_sentences_below_the_figures() -> None:
    pair = Pair(SEEN, SEEN)
    assert "10.00% of the influence by gradient under A" in distance_words(pair, 2, "gradient")
    assert "60.00% of the influence by attention rollout under A" in distance_words(pair, 2, "rollout")
    assert "influence by attention rollout 0.3)" in path_words(RUN, SEEN, [1, 3, 5], "rollout")


def asked(**own: int) -> View:
    return View(own=(ReachSettings(**own),))


def test_a_path_from_after_the_token_says_so_and_begins_where_it_can() -> None:
    """It silently became a relay of no hops from the token to itself."""
    assert source_of(asked(path_from=7), SEEN) == source_of(asked(), SEEN) == 1
    (note,) = place_notes(asked(path_from=7), RUN, SEEN)
    assert "cannot begin at position 7, because the token asked about is at 5" in note and "at 1 ‘1’ instead" in note


def test_a_path_from_outside_the_reach_says_so_and_one_inside_says_nothing() -> None:
    assert source_of(asked(path_from=0), SEEN) == 1
    (note,) = place_notes(asked(path_from=0), RUN, SEEN)
    assert "does not depend on 0 ‘0’; the path begins at the nearest position on which it does, 1 ‘1’" in note
    assert place_notes(asked(path_from=2), RUN, SEEN) == [] and source_of(asked(path_from=5), SEEN) == 5


def test_a_query_beyond_the_text_says_which_one_is_shown() -> None:
    (note,) = place_notes(replace(asked(), query=5000), RUN, SEEN)
    assert note == "The text has no position 5000; its last token is shown."

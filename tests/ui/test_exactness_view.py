"""What the Exactness page says of given numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kvviz.analysis.exactness.compared import Compared
from kvviz.analysis.exactness.edits import Changes
from kvviz.analysis.exactness.removal import OneStep
from kvviz.analysis.exactness.renumbering import Slots
from kvviz.ui.exactness import edits, numbering, removal, reuse
from kvviz.ui.exactness.settings import ExactnessSettings, parse_edit
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import scientific


def line(name: str, gaps: list[float], likeliest: list[int]) -> reuse.Reused:
    compared = Compared(np.array(gaps), np.array(likeliest), np.array([1, 2, 3]), 10)
    broken = compared.broken_row is not None
    return reuse.Reused(name, f"words of {name}", compared, "yes" if broken else "", "no" if broken else "", 2e-4)


SAME, SHIFTED, EDITED = (
    line("same", [1e-6, 4.6e-5, 2e-5], [1, 2, 3]),
    line("positions", [1.0, 0.5, 0.5], [1, 9, 3]),
    line("prefix", [1.0, 2.0, 0.5], [1, 2, 3]),
)


def test_the_headline_names_what_breaks_first() -> None:
    assert reuse.headline([SAME, EDITED, SHIFTED], 0) == (
        "Cached and uncached answers differ by at most 4.6·10⁻⁵ nats; with words of positions the answer changes at "
        "token 12, ‘no’ instead of ‘yes’."
    )
    assert reuse.headline([SAME, EDITED], 0).endswith("of 1 broken condition none changes the likeliest token.")
    assert reuse.headline([SAME], 0) == "Cached and uncached answers differ by at most 4.6·10⁻⁵ nats."
    wrong = replace(SAME, compared=replace(SAME.compared, gaps=np.array([1e-2, 0, 0])))
    assert "more than the 2.0·10⁻⁴ that rounding explains" in reuse.headline([wrong], 0)
    assert "changes at token 13," in reuse.headline([SAME, SHIFTED], 1)  # where positions count from 1


def test_the_table_has_a_row_a_line() -> None:
    rows = reuse.table([SAME, SHIFTED], 0).splitlines()[2:]
    assert rows == [
        "| words of same | never | 4.6·10⁻⁵ | 100.0% |",
        "| words of positions | token 12\\: ‘no’ instead of ‘yes’ | 1 | 66.7% |",
    ]


def test_only_what_is_switched_on_is_asked_for_and_each_amount_is_in_its_key() -> None:
    view = replace(View(), own=(ExactnessSettings(prefix=False, rule=False, shift=3),))
    keys = [key for key, _ in reuse.wanted(view)]
    assert [key[-2:] for key in keys] == [
        *(("same", None), ("half", None), ("weights", 2), ("positions", 3), ("dtype", None)),
    ]
    assert all(key[:2] == ("reuse", view.experiment.model) for key in keys)


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0"), (4.58e-5, "4.6·10⁻⁵"), (1e-12, "1.0·10⁻¹²"), (0.00123, "0.00123"), (22.8, "22.8")],
)
def test_small_numbers_are_written_with_a_power(value: float, written: str) -> None:
    assert scientific(value) == written


def changes(count: int, first: int) -> Changes:
    moved = np.zeros((3, count))
    moved[0, first] = moved[1:, first:] = 0.5
    return Changes(moved, moved)


def test_an_edit_in_numbers() -> None:
    none, every = Changes(np.zeros((3, 6)), np.zeros((3, 6))), changes(6, 0)
    labels = tuple("abcdef")
    found = edits.Edited(2, "cat", "dog", labels, changes(6, 2), {"causal": none, "bidirectional": every})
    assert edits.edit_words(found).startswith(
        "At position 2 ‘cat’ replaced by ‘dog’: from layer 1 on all 8 entries from there to the end change, in layer 0 "
        "only its own; before it none."
    )
    assert "deleted: from layer 1" in edits.edit_words(replace(found, after=""))
    assert edits.edit_words(replace(found, by_edit=none)).endswith("no entry changes.")
    assert edits.append_words(found).startswith("One token appended: under the causal mask no old entries change")
    assert "all 12 old entries above layer 0 would change, by 0.5 of their length" in edits.append_words(found)


def test_removal_in_numbers() -> None:
    weights = {way: np.array([[[0.5, 0.5]]]) for way in removal.WAYS}
    outputs = {"full": [[[1.0, 0.0]]], "removed": [[[2.0, 0.0]]], "zeroed": [[[0.5, 0.0]]]}
    step = OneStep(0, 1, weights, {way: np.array(out) for way, out in outputs.items()}, np.array([[[1.0, 0.0]]]))
    losses = {"full": np.array([3.0]), "removed": np.array([4.5]), "zeroed": np.array([3.25])}
    found = removal.Removal(1, ("0 a", "1 b"), losses, step)
    assert "4.5 nats a token instead of 3" in removal.loss_words(found) and "3.25 nats" in removal.loss_words(found)
    said = removal.step_words(found, 0, 0)
    assert "weight p = 0.5. Removed, the output moves by 1 of its length; zeroed, by 0.5." in said
    assert "in all 1 heads to 0 of the largest one" in said
    assert removal.weights_figure(found, 0, 0).table.header == ("key", "full", "removed", "value set to zero")


def test_numbering_in_numbers() -> None:
    slots = Slots(
        np.array([0, 5, 6]), {way: np.arange(3) for way in numbering.WAYS}, np.array([0, -4, -4]), np.ones((3, 2))
    )
    losses = {"original": np.array([9, 9, 2.0]), "slot": np.array([9, 9, 3.0]), "unrotated": np.array([9, 9, 5.0])}
    found = numbering.Numbering(3, 6, tuple("abcdefg"), losses, slots)
    said = numbering.numbering_words(found)
    assert "2 nats a token with original" in said and "3 numbered by slot" in said and "5 when positions" in said
    assert "Slot 1 holds position 5, so its key is turned back by 4 positions; 2 keys are turned, 1 stay" in (
        numbering.slot_words(found)
    )
    assert "all three are the same" in numbering.numbering_words(replace(found, budget=9))


def test_a_long_replacement_is_refused() -> None:
    with pytest.raises(ValueError, match="The replacement of 41 characters is too long"):
        parse_edit("x" * 41)

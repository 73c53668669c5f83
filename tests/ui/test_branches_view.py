"""What the Branches page says of a given speculation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kvviz.analysis.drafts.cost import TreeCost
from kvviz.analysis.drafts.speculation import Speculation, Step
from kvviz.analysis.drafts.tree import ROOT, Tree
from kvviz.ui.branches import view as look
from kvviz.ui.branches.run import Drafted, draft_job
from kvviz.ui.branches.settings import BranchesSettings
from kvviz.ui.shell.state import View

TREE = Tree((5, 6, 7), (ROOT, 0, ROOT))
WEIGHTS = np.where(TREE.mask(0).numpy(), 0.1, 0.0).astype(np.float32)[None]
FIRST = Step(2, 4, Tree(), (), (4,), np.ones((1, 1, 1), np.float32), np.zeros((1, 1), np.float32))
BEST = Step(3, 4, TREE, (0,), (5, 9), WEIGHTS, np.zeros((1, 4), np.float32))
FOUND = Speculation(3, (4, 5, 9), (4, 5, 9), (FIRST, BEST), 4e-5, 1e-6, None, 2e-4, 1.2e-5)
DRAFTED = Drafted(FOUND, {token: f"t{token}" for token in range(10)}, (1, 2, 3), "t4t5t9", 14, 0)


def test_the_headline_counts_drafts_and_slots() -> None:
    assert look.headline(DRAFTED) == (
        "Of 3 drafted tokens 1 was accepted in 2 steps; the slots of the other 2 were dropped; the text and the cache "
        "equal "
        "plain decoding."
    )
    none = replace(DRAFTED, found=replace(FOUND, steps=(FIRST,)))
    assert look.headline(none).startswith("Nothing was drafted in 1 step")
    other = replace(DRAFTED, found=replace(FOUND, greedy_token_ids=(4, 5, 8), margin=1e-6))
    assert "the text parts from plain decoding" in look.headline(other)
    assert "two best choices lie 1.0·10⁻⁶ nats apart" in look.equal_words(other)


@pytest.mark.parametrize("wrong", [{"largest_gap": 3.0}, {"cache_gap": 1.0}])
def test_numbers_that_rounding_does_not_explain_are_not_called_equal(wrong: dict[str, float]) -> None:
    other = replace(DRAFTED, found=replace(FOUND, **wrong))  # type: ignore[arg-type]
    assert "equal plain decoding" not in look.headline(other)
    assert "differ by more than rounding explains" in look.headline(other)
    assert "more than another order of the same sums explains" in look.equal_words(other)
    assert "adds up in another order" in look.equal_words(DRAFTED)


def test_the_best_step_is_shown_unless_one_is_chosen() -> None:
    assert DRAFTED.step(None) == 1 and DRAFTED.step(0) == 0 and DRAFTED.step(99) == 1
    assert DRAFTED.before(BEST) == [1, 2, 3]


def test_a_step_in_words() -> None:
    said = look.step_words(DRAFTED, 1)
    assert (
        "after ‘t4’ 3 tokens were drafted and verified in one forward of 4 rows; 1 accepted. Written: ‘t5 t9’." in said
    )
    assert "the weights between them add up to 0." in said
    assert "0 tokens were drafted; the model writes ‘t4’" in look.step_words(DRAFTED, 0)
    assert "adds 4 slots to 3; 2 stay" in look.slot_words(DRAFTED, 1) and "2 are dropped" in look.slot_words(DRAFTED, 1)
    assert "3 tokens in 2 steps: 1.5 tokens a forward" in look.length_words(DRAFTED)
    assert "All 3 new tokens are those of plain greedy decoding" in look.equal_words(DRAFTED)


def test_labels_of_a_block_are_distinct() -> None:
    labels, tail = look.block_labels(DRAFTED, BEST)
    assert tail == 3 and labels == ["0 t1", "1 t2", "2 t3", "3 t4 (0)", "4 t5 (1)", "5 t6 (2)", "4 t7 (3)"]
    assert "2 of 4 rows kept" in look.slots_figure(DRAFTED, 1).alt
    assert "1 of 3 drafted tokens accepted" in look.tree_figure(DRAFTED, 1, head=9).alt


def test_a_tree_pays_when_it_writes_more_tokens_than_it_costs_steps() -> None:
    said = look.cost_words(TreeCost(4, 0.06, 0.05), DRAFTED)
    assert "the tree costs 0.3 times as much as 4 single steps, or as much as 1.2 of them" in said and "pays." in said
    assert "does not pay" in look.cost_words(TreeCost(4, 0.1, 0.05), DRAFTED)


def test_layers_count_only_where_layers_draft() -> None:
    keys = []
    for layers in (3, 4):
        for drafter in ("lookup", "layers"):
            view = replace(View(), own=(BranchesSettings(drafter=drafter, layers=layers),))
            keys.append(draft_job(view)[0])
    assert keys[0] == keys[2] and keys[1] != keys[3]

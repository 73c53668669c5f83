"""Masks of a block, removal and zeroing, edits and positions, against the stock model and naive loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from kvviz.analysis.exactness.edits import changes_by_appending, changes_by_edit, edited, entries_of
from kvviz.analysis.exactness.masks import corner_mask, masked, right_mask
from kvviz.analysis.exactness.removal import one_step, removal_losses
from kvviz.analysis.exactness.renumbering import kept_mask, losses_by_numbering, slots_at, unrotated_logits
from kvviz.policies.streaming import Streaming
from kvviz.run.reading import Reading
from tests.analysis.exactness.stock_runs import double, row_gaps, stock_read, stock_reuse
from tests.tiny import some_ids, stock, tiny

TOKENS, PREFIX = 30, 17
FULL = ("llama", "qwen3", "gpt2", "gpt_neox")


def naive_losses(logits: torch.Tensor, rest: torch.Tensor) -> list[float]:
    return [-float(logits[row].log_softmax(0)[rest[row + 1]]) for row in range(len(rest) - 1)]


def test_row_i_sees_key_s_plus_i() -> None:
    right, corner = right_mask(3, 2), corner_mask(3, 2)
    assert right.int().tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert corner.int().tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]


@pytest.mark.parametrize("name", FULL)
def test_the_right_mask_is_exact_and_the_corner_one_is_the_stock_models_mistake_too(name: str) -> None:
    ids, model = some_ids(TOKENS), tiny(name)
    whole, _ = stock_read(double(name), ids)
    right, corner = masked(model, ids, PREFIX, whole[PREFIX:])
    wrong = stock_reuse(double(name), ids[:PREFIX], ids[PREFIX:], visible=corner_mask(TOKENS - PREFIX, PREFIX))
    assert right.compared.gap <= 1e-9
    np.testing.assert_allclose(corner.compared.gaps, row_gaps(wrong, whole[PREFIX:]), atol=1e-9)
    np.testing.assert_allclose(corner.losses, naive_losses(wrong, ids[PREFIX:]), atol=1e-9)
    np.testing.assert_allclose(right.losses, naive_losses(whole[PREFIX:], ids[PREFIX:]), atol=1e-9)


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("place", [0, 5, PREFIX - 1])
def test_losses_after_an_entry_was_removed_or_zeroed(name: str, place: int) -> None:
    ids = some_ids(TOKENS)
    rest = ids[PREFIX:]
    visible = right_mask(len(rest), PREFIX)

    def zero(cache: DynamicCache) -> None:
        for layer in cache.layers:
            layer.values[:, :, place] = 0

    without = visible.clone()
    without[:, place] = False
    expected = {
        "full": stock_reuse(double(name), ids[:PREFIX], rest),
        "removed": stock_reuse(double(name), ids[:PREFIX], rest, visible=without),
        "zeroed": stock_reuse(double(name), ids[:PREFIX], rest, zero),
    }
    found = removal_losses(tiny(name), ids, PREFIX, place)
    for way, logits in expected.items():
        np.testing.assert_allclose(found[way], naive_losses(logits, rest), atol=1e-9)
    assert not np.allclose(found["removed"], found["zeroed"], atol=1e-6)


@pytest.mark.parametrize("name", [*FULL, "mistral", "gemma3"])
def test_one_removal_is_the_closed_form(name: str) -> None:
    ids, place, step = some_ids(TOKENS), PREFIX - 2, PREFIX + 3
    found = one_step(tiny(name), ids, PREFIX, place, step)
    for way in ("full", "zeroed"):
        np.testing.assert_allclose(found.weights[way].sum(-1), 1, atol=1e-12)
    np.testing.assert_allclose(found.weights["removed"].sum(-1), 1, atol=1e-12)
    assert not found.weights["removed"][:, :, place].any()
    # by hand: what is left is scaled up, and the output moves away from the value
    share = found.share[..., None]
    np.testing.assert_allclose(
        np.delete(found.weights["removed"], place, -1), np.delete(found.weights["full"], place, -1) / (1 - share)
    )
    np.testing.assert_allclose(found.outputs["removed"] - found.outputs["full"], found.formula, atol=1e-12)
    assert found.formula_gap < 1e-9 and found.change("full").max() == 0 and found.change("zeroed").max() > 0


def test_weights_of_the_step_are_the_stock_models() -> None:
    ids, step = some_ids(TOKENS), PREFIX + 3
    with torch.inference_mode():
        maps = stock("llama")(input_ids=ids[None], output_attentions=True, use_cache=False).attentions
    found = one_step(tiny("llama"), ids, PREFIX, 2, step)
    for layer, weights in enumerate(maps):  # eager softmax is float32
        np.testing.assert_allclose(found.weights["full"][layer], weights[0, :, step, : step + 1], atol=1e-6)


@pytest.mark.parametrize("name", FULL)
def test_an_early_edit_changes_every_later_entry_from_layer_1_on(name: str) -> None:
    ids = some_ids(TOKENS).tolist()
    after = edited(ids, 6, [(ids[6] + 1) % 64])
    changed = changes_by_edit(tiny(name), ids, after).changed
    expected = np.zeros_like(changed)
    expected[0, 6] = True
    expected[1:, 6:] = True
    assert (changed == expected).all()
    pairs = zip(stock_entries(name, ids), stock_entries(name, after), strict=True)
    naive = [
        [any(float((b[0, :, t] - a[0, :, t]).norm()) > 1e-9 for a, b in ((k, k2), (v, v2))) for t in range(TOKENS)]
        for (k, v), (k2, v2) in pairs
    ]
    assert (np.array(naive) == expected).all()


def stock_entries(name: str, ids: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    _, cache = stock_read(double(name), torch.tensor(ids))
    return [(layer.keys, layer.values) for layer in cache.layers]


def test_deleting_moves_everything_after_it() -> None:
    ids = some_ids(TOKENS).tolist()
    found = changes_by_edit(tiny("llama"), ids, edited(ids, 6, []))
    assert found.keys.shape == (3, TOKENS - 1) and not found.changed[:, :6].any()
    # in layer 0 an entry is made of its token and its position: two equal tokens in a row leave one as it was
    same = np.array([ids[place] == ids[place + 1] for place in range(6, TOKENS - 1)])
    assert (found.changed[0, 6:] == ~same).all() and found.changed[1:, 6:].all()


def test_an_edit_out_of_range_or_of_the_only_token_is_refused() -> None:
    with pytest.raises(ValueError, match="no token 3 to edit: the text has the positions 0–2"):
        edited([1, 2, 3], 3, [4])
    with pytest.raises(ValueError, match="would empty the text"):
        edited([1], 0, [])
    assert edited([1, 2, 3], 1, [7, 8]) == [1, 7, 8, 3]


@pytest.mark.parametrize("name", FULL)
def test_a_bidirectional_pass_could_not_have_kept_anything(name: str) -> None:
    ids = some_ids(TOKENS).tolist()
    found = changes_by_appending(tiny(name), ids, 9)
    assert found["causal"].either.max() < 1e-12
    assert not found["bidirectional"].changed[0].any() and found["bidirectional"].changed[1:].all()
    every = torch.ones(TOKENS, TOKENS, dtype=torch.bool)
    _, cache = stock_read(double(name), torch.tensor(ids), visible=every)
    for (keys, values), layer in zip(entries_of(tiny(name), ids, is_causal=False), cache.layers, strict=True):
        torch.testing.assert_close(keys, layer.keys, rtol=0, atol=1e-9)
        torch.testing.assert_close(values, layer.values, rtol=0, atol=1e-9)


def test_renumbering_without_rotating_is_what_a_stale_counter_does() -> None:
    """Token by token with a cache that really evicts, its length taken for the position."""
    ids, policy, model = some_ids(TOKENS), Streaming(budget=8, sinks=2), double("llama")
    cache, naive = DynamicCache(), []
    for token in ids:
        held = cache.get_seq_length()
        if held == policy.budget:  # room for the new one: the oldest behind the sinks goes
            for layer in cache.layers:
                for side in ("keys", "values"):
                    states = getattr(layer, side)
                    setattr(layer, side, torch.cat([states[:, :, :2], states[:, :, 3:]], 2))
            held -= 1
        with torch.inference_mode():
            places = torch.tensor([[held]])
            naive.append(
                model(input_ids=token[None, None], position_ids=places, cache=cache, use_cache=True).logits[0, -1]
            )
    torch.testing.assert_close(unrotated_logits(tiny("llama"), ids, policy), torch.stack(naive), rtol=0, atol=1e-9)
    losses = losses_by_numbering(tiny("llama"), ids, policy)
    assert set(losses) == {"original", "slot", "unrotated"} and all(
        one.shape == (TOKENS - 1,) for one in losses.values()
    )
    # nothing has left yet: all three are the same
    np.testing.assert_allclose(losses["unrotated"][:7], losses["original"][:7], atol=1e-9)
    np.testing.assert_allclose(losses["slot"][:7], losses["original"][:7], atol=1e-9)


def test_slots_by_hand() -> None:
    found = slots_at(tiny("llama"), Streaming(budget=5, sinks=2), 9, 0)
    assert found.positions.tolist() == [0, 1, 7, 8, 9] and found.turns.tolist() == [0, 0, -5, -5, -5]
    assert found.distances["original"].tolist() == [9, 8, 2, 1, 0]
    assert found.distances["slot"].tolist() == [4, 3, 2, 1, 0]
    assert found.distances["unrotated"].tolist() == [4, 3, 0, 0, 0]
    assert found.angles.shape == (5, 4) and found.angles[2, 0] == pytest.approx(-5.0)  # the first pair turns 1 radian
    assert kept_mask(4, Streaming(budget=2, sinks=1)).int().tolist() == [
        *([1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]),
    ]


def test_a_reading_copies_and_changes_its_entries_alone() -> None:
    reading = Reading(tiny("llama"))
    reading.read(some_ids(6))
    other = reading.copy()
    other.zero(2)
    other.remove(1)
    assert other.held == 5 and reading.held == 6
    assert bool(reading.entries()[0][1][:, :, 2].any()) and not bool(other.entries()[0][1][:, :, 1].any())

"""What reuse of a cache breaks, against the stock model doing the same with its own cache."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import Tensor

from kvviz.analysis.exactness.compared import Compared, check_prefix, uncached_logits
from kvviz.analysis.exactness.reuse import Condition, conditions, in_other_format, other_token, reused, shifted_together
from kvviz.models.altered import attention_matrices, in_format, with_adapter
from tests.analysis.exactness.stock_runs import double, row_gaps, stock_read, stock_reuse
from tests.tiny import NAMES, ROTARY, some_ids, tiny

TOKENS, PREFIX = 30, 17
FULL = ("llama", "qwen3", "gpt2", "gpt_neox")  # whose layers all see everything


def gaps_of(name: str, condition: Condition, ids: Tensor, **more: int) -> Compared:
    return reused(tiny(name), ids, PREFIX, condition, whole_logits(name, ids), **more)


def whole_logits(name: str, ids: Tensor) -> Tensor:
    """The stock model's answers to the rest, from one forward without a cache."""
    with torch.inference_mode():
        return double(name)(input_ids=ids[None], use_cache=False).logits[0, PREFIX:]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [None, 4, 1])
def test_a_cache_whose_conditions_hold_answers_as_no_cache_does(name: str, rows: int | None) -> None:
    found = gaps_of(name, Condition(), some_ids(TOKENS), rows=rows)
    assert found.gap <= 1e-9 and found.agreement == 1 and found.first_token is None
    assert found.gaps.shape == (TOKENS - PREFIX,)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_compared_with_is_the_stock_model_without_a_cache(name: str) -> None:
    ids = some_ids(TOKENS)
    mine = uncached_logits(tiny(name), ids, PREFIX)
    # its eager attention takes the softmax in float32
    assert float(row_gaps(mine, whole_logits(name, ids)).max()) < 1e-5


@pytest.mark.parametrize("name", FULL)
def test_another_token_in_the_prefix(name: str) -> None:
    ids = some_ids(TOKENS)
    other = ids.clone()
    other[3] = (int(ids[3]) + 1) % 64
    expected = stock_reuse(double(name), other[:PREFIX], ids[PREFIX:])
    whole, _ = stock_read(double(name), ids)
    found = gaps_of(name, Condition(replaced=(3, int(other[3]))), ids)
    np.testing.assert_allclose(found.gaps, row_gaps(expected, whole[PREFIX:]), atol=1e-9)
    differs = [place for place in range(TOKENS - PREFIX) if expected[place].argmax() != whole[PREFIX + place].argmax()]
    assert found.gap > 1e-3 and found.first_token == (PREFIX + differs[0] + 1 if differs else None)


@pytest.mark.parametrize("name", ("llama", "qwen3", "gpt_neox"))
def test_shifted_positions_break_it_unless_all_are_shifted(name: str) -> None:
    ids = some_ids(TOKENS)
    places = torch.arange(PREFIX, TOKENS) + 2
    expected = stock_reuse(double(name), ids[:PREFIX], ids[PREFIX:], positions=places)
    whole, _ = stock_read(double(name), ids)
    found = gaps_of(name, Condition(shift=2), ids)
    np.testing.assert_allclose(found.gaps, row_gaps(expected, whole[PREFIX:]), atol=1e-9)
    assert found.gap > 1e-3
    together = shifted_together(tiny(name), ids, PREFIX, 2, whole_logits(name, ids))
    # positions are rotated in float32 by transformers whatever the model's format is
    assert together.gap <= 1e-4


@pytest.mark.parametrize("name", FULL)
def test_a_prefix_read_under_a_window(name: str) -> None:
    ids = some_ids(TOKENS)
    age = torch.arange(PREFIX)[:, None] - torch.arange(PREFIX)
    _, cache = stock_read(double(name), ids[:PREFIX], visible=(age >= 0) & (age < 4))
    expected, _ = stock_read(double(name), ids[PREFIX:], held_before=cache)
    whole, _ = stock_read(double(name), ids)
    found = gaps_of(name, Condition(window=4), ids)
    np.testing.assert_allclose(found.gaps, row_gaps(expected, whole[PREFIX:]), atol=1e-9)
    assert found.gap > 1e-3
    assert gaps_of(name, Condition(window=PREFIX), ids).gap <= 1e-9  # as wide as the prefix: nothing was hidden


def test_a_prefix_read_in_another_format() -> None:
    ids = some_ids(TOKENS)
    half = deepcopy(double("llama")).to(torch.bfloat16)
    _, cache = stock_read(half, ids[:PREFIX])
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys.double(), layer.values.double()
    expected, _ = stock_read(double("llama"), ids[PREFIX:], held_before=cache)
    whole, _ = stock_read(double("llama"), ids)
    found = gaps_of("llama", Condition(number_format="bfloat16"), ids)
    # two attention kernels in bfloat16 (8 bits) round differently, so the two caches are near, not equal
    np.testing.assert_allclose(found.gaps, row_gaps(expected, whole[PREFIX:]), atol=0.2 * found.gap)
    assert found.gap > 1e-4


def test_other_weights_are_a_change_of_low_rank_that_is_taken_back() -> None:
    model, ids = tiny("llama"), some_ids(TOKENS)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    changed = deepcopy(double("llama"))
    with with_adapter(model, 0.05, seed=3):
        moved = {name: weight - before[name] for name, weight in model.named_parameters()}
        changed.load_state_dict(model.state_dict())
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())
    for name, change in moved.items():
        is_attention = any(part in name for part in ("q_proj", "k_proj", "v_proj", "o_proj"))
        assert bool(change.any()) == is_attention
        if is_attention:
            assert torch.linalg.matrix_rank(change, rtol=1e-5) == 8
            assert float(change.norm() / before[name].norm()) == pytest.approx(0.05, rel=1e-5)
    with with_adapter(model, 0.05):
        changed.load_state_dict(model.state_dict())
    _, cache = stock_read(changed, ids[:PREFIX])
    expected, _ = stock_read(double("llama"), ids[PREFIX:], held_before=cache)
    whole, _ = stock_read(double("llama"), ids)
    found = gaps_of("llama", Condition(adapter=0.05), ids)
    np.testing.assert_allclose(found.gaps, row_gaps(expected, whole[PREFIX:]), atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_itself_again_after_an_error(name: str) -> None:
    model, before = tiny(name), [weight.clone() for weight in tiny(name).parameters()]
    assert attention_matrices(model)
    with pytest.raises(RuntimeError), in_format(model, torch.bfloat16), with_adapter(model, 0.1):
        raise RuntimeError
    assert model.dtype == torch.float64
    assert all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("name", ROTARY)
def test_all_in_half_precision_is_compared_with_half_precision(name: str) -> None:
    found = in_other_format(tiny(name), some_ids(TOKENS), PREFIX, "bfloat16", rows=1)
    assert 0 < found.gap < 10 and 0 < found.agreement <= 1


def test_each_condition_changes_one_thing() -> None:
    by_name = conditions(replaced=(1, 2), adapter=0.1, shift=3, window=4, number_format="bfloat16")
    assert list(by_name) == ["prefix", "weights", "positions", "rule", "dtype"]
    plain = vars(Condition())
    for one in by_name.values():
        assert sum(vars(one)[field] != plain[field] for field in plain) == 1


def test_another_token_is_another_token() -> None:
    assert other_token([5, 6, 5], 0) == 6 and other_token([5, 6, 5], 1) == 5
    assert other_token([5, 5], 0) == 4 and other_token([0, 0], 1) == 1


@pytest.mark.parametrize(
    ("prefix", "tokens", "words"),
    [(0, 9, "from 1 to 7"), (8, 9, "after 8 of 9"), (1, 2, "at least 3 tokens"), (1, 1, "A text of 1 token is")],
)
def test_a_prefix_that_leaves_nothing_to_answer_is_refused(prefix: int, tokens: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_prefix(prefix, tokens)

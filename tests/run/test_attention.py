from __future__ import annotations

import math

import pytest
import torch

from kvviz.run.attention import Rule, combine, fused, scores, weights_of


def one_row(logits: list[float], rule: Rule) -> list[float]:
    return weights_of(torch.tensor(logits, dtype=torch.float64).view(1, 1, 1, -1), None, rule).flatten().tolist()


def test_off_by_one_may_abstain() -> None:
    """n zero scores: 1/(n+1) each, n/(n+1) in all."""
    weights = one_row([0.0, 0.0, 0.0], Rule(1.0, "off_by_one"))
    assert weights == pytest.approx([0.25] * 3)
    by_hand = [math.exp(x) / (1 + math.exp(2) + math.exp(-1)) for x in (2, -1)]
    assert one_row([2.0, -1.0], Rule(1.0, "off_by_one")) == pytest.approx(by_hand, abs=1e-15)


def test_off_by_one_equals_a_key_of_score_zero_and_value_zero() -> None:
    x = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    value = torch.randn(1, 2, 5, 8, dtype=torch.float64)
    mine = combine(weights_of(x, None, Rule(1.0, "off_by_one")), value)
    wider = torch.cat([torch.zeros_like(x[..., :1]), x], -1)
    padded = torch.cat([torch.zeros_like(value[:, :, :1]), value], 2)
    assert torch.allclose(mine, combine(weights_of(wider, None, Rule(1.0)), padded), atol=1e-14)


def test_a_learned_sink_logit_of_zero_is_off_by_one() -> None:
    x = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    learned = weights_of(x, None, Rule(1.0, sink_logits=torch.zeros(6, dtype=torch.float64)))
    assert torch.allclose(learned, weights_of(x, None, Rule(1.0, "off_by_one")), atol=1e-15)


def test_large_scores_do_not_overflow() -> None:
    assert one_row([1000.0, 999.0], Rule(1.0, "off_by_one")) == pytest.approx([0.7310585786, 0.2689414214])
    assert one_row([-1000.0, -1000.0], Rule(1.0, "off_by_one")) == [0.0, 0.0]


def test_hidden_slots_get_exactly_nothing() -> None:
    visible = torch.tensor([[[True, False, True]]])
    weights = weights_of(torch.zeros(1, 1, 1, 3), visible, Rule(1.0))
    assert weights.flatten().tolist() == [0.5, 0.0, 0.5]


def test_softcap_squashes_scores() -> None:
    capped = one_row([100.0, 0.0], Rule(1.0, softcap=2.0))
    assert capped == pytest.approx([1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))], abs=1e-12)


@pytest.mark.parametrize(("query_heads", "kv_heads"), [(9, 3), (14, 2), (8, 8)])
def test_query_heads_use_the_kv_head_of_their_group(query_heads: int, kv_heads: int) -> None:
    """Known fault 18: scores come per query head where the cache has fewer KV heads."""
    torch.manual_seed(0)
    query = torch.randn(1, query_heads, 4, 8, dtype=torch.float64)
    key, value = (torch.randn(1, kv_heads, 6, 8, dtype=torch.float64) for _ in range(2))
    visible = torch.rand(kv_heads, 4, 6) < 0.7
    visible[..., 0] = True
    rule = Rule(8**-0.5)
    mine = combine(weights_of(scores(query, key, rule), visible, rule), value)
    for head in range(query_heads):
        kv = head // (query_heads // kv_heads)
        raw = query[0, head] @ key[0, kv].T * rule.scaling
        weights = raw.masked_fill(~visible[kv], float("-inf")).softmax(-1)
        assert torch.allclose(mine[0, :, head], weights @ value[0, kv], atol=1e-14)
    assert torch.allclose(mine, fused(query, key, value, visible, rule, False), atol=1e-14)
    alike = visible[:1]
    shared = combine(weights_of(scores(query, key, rule), alike, rule), value)
    assert torch.allclose(shared, fused(query, key, value, alike, rule, False), atol=1e-14)


def test_heads_that_do_not_divide_are_refused_with_both_numbers() -> None:
    """Known fault 145: heads that do not divide are spread silently."""
    with pytest.raises(ValueError, match="9 query heads cannot share 2 KV heads"):
        scores(torch.randn(1, 9, 1, 4), torch.randn(1, 2, 3, 4), Rule(1.0))

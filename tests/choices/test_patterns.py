"""Patterns by hand, against masks written out, and against the stock model under the same mask."""

from __future__ import annotations

import pytest
import torch

from kvviz.choices.patterns import Global, Layered, parse_pattern
from kvviz.choices.setup import parse_setup
from kvviz.run.engine import Pass
from tests.naive import masked_logits
from tests.tiny import some_ids, stock, tiny

TOKENS = 12


def seen(spec: str, query: int, layer: int = 0, head: int = 0) -> list[int]:
    """Positions that a query sees, causality included."""
    heads = torch.arange(3).view(-1, 1, 1)
    mask = parse_pattern(spec).sees(torch.tensor([[query]]), torch.arange(query + 1)[None, None], layer, heads)
    return mask[head if len(mask) > 1 else 0, 0].nonzero()[:, 0].tolist()


def test_a_dilated_row_is_every_d_th_position() -> None:
    assert seen("dilated:window=4,dilation=2", 9) == [3, 5, 7, 9]
    assert seen("dilated:window=4,dilation=2", 4) == [0, 2, 4]
    assert seen("dilated:window=3,dilation=1", 9) == seen("sliding:window=3", 9) == [7, 8, 9]


def test_a_list_of_dilations_goes_by_head() -> None:
    spec = "dilated:window=2,dilation=1/4"
    assert [seen(spec, 9, head=head) for head in range(3)] == [[8, 9], [5, 9], [8, 9]]


def test_global_positions_see_all_and_are_seen_by_all() -> None:
    spec = "global:window=2,tokens=0/5"
    assert seen(spec, 9) == [0, 5, 8, 9]
    assert seen(spec, 5) == [0, 1, 2, 3, 4, 5]
    assert seen(spec, 3) == [0, 2, 3]  # position 5 is still to come


def test_layered_windows() -> None:
    assert [Layered(windows=(4, 0, 8)).window_of(layer) for layer in range(5)] == [4, 0, 8, 4, 0]
    assert [Layered(window=4, full_every=3).window_of(layer) for layer in range(6)] == [4, 4, 0, 4, 4, 0]
    assert seen("layered:window=2,full_every=2", 6, layer=0) == [5, 6]
    assert seen("layered:window=2,full_every=2", 6, layer=1) == list(range(7))


@pytest.mark.parametrize(
    "spec", ["sliding:window=3", "dilated:window=3,dilation=2", "global:window=2,tokens=1/6", "layered:windows=3"]
)
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_pattern_is_the_stock_model_under_its_mask(name: str, spec: str) -> None:
    ids = some_ids(TOKENS)
    done = Pass(tiny(name), parse_setup({"policy": "full", "pattern": spec}), prompt_tokens=1)
    logits = torch.cat([done.feed(ids[start : start + 5]) for start in range(0, TOKENS, 5)])
    expected = masked_logits(stock(name), ids, [seen(spec, query) for query in range(TOKENS)])
    assert (logits - expected).abs().max() < 2e-6
    assert (done.evicted_at() == TOKENS).all()  # it hides, it never evicts


@pytest.mark.parametrize(
    "pattern", ["dilated:window=3,dilation=1/3", "global:window=4,tokens=2", "layered:windows=3/0/5"]
)
@pytest.mark.parametrize("policy", ["full", "random:budget=8", "h2o:budget=8", "snapkv:budget=6,observe=3"])
@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_patterns_combine_with_policies_and_native_windows(name: str, policy: str, pattern: str) -> None:
    setup, ids = parse_setup({"policy": policy, "pattern": pattern}), some_ids(30)
    results = []
    for block in (1, 7, 256):
        done = Pass(tiny(name), setup, prompt_tokens=15)
        logits = torch.cat([done.feed(ids[start : start + block]) for start in range(0, 30, block)])
        results.append((logits, done.evicted_at()))
    for logits, evicted_at in results[1:]:
        assert (logits - results[0][0]).abs().max() < 1e-9
        assert torch.equal(evicted_at, results[0][1])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dilated:dilation=0", "from 1 to 4096"),
        ("dilated:dilation=", "at least one"),
        ("dilated:dilation=1/x", "'x'"),
        ("global:tokens=-1", "from 0 to"),
        ("layered:full_every=0", "full_every=0"),
        ("slidin", "did you mean 'sliding'"),
    ],
)
def test_bad_patterns_are_one_sentence(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_pattern(text)


def test_lists_spell_back() -> None:
    from kvviz.knobs import spell

    for pattern in (Global(4, (0, 7, 9)), Layered(windows=(4, 0)), Layered(), parse_pattern("dilated:dilation=1/2/4")):
        assert parse_pattern(spell(pattern)) == pattern
    assert spell(Global(4, (0, 7))) == "global:window=4,tokens=0/7"

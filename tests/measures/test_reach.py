"""Exact sets against plain Python sets, and the papers' numbers."""

import numpy as np
import pytest
import torch

from kvviz.choices.patterns import parse_pattern
from kvviz.measures.reach import bound, cones, reach, rounded, span, window_bound

SPECS = (
    "causal",
    "sliding:window=1",
    "sliding:window=3",
    "dilated:window=3,dilation=2",
    "dilated:window=3,dilation=1/4",
    "global:window=3,tokens=5/9",
    "global:window=2,tokens=0",
    "global:window=2,tokens=3/11/23",
    "layered:windows=3/5/0/2",
    "layered:window=4,full_every=3",
)


def mask_of(pattern, tokens, layer, heads=2):
    """(T, T) union over the heads, as the engine asks a pattern."""
    places, head = torch.arange(tokens), torch.arange(heads).view(-1, 1, 1)
    sees = pattern.sees(places[:, None], places[None, None], layer, head).broadcast_to(heads, tokens, tokens)
    return sees.any(0) & (places <= places[:, None])


def by_hand(pattern, depth, tokens):
    """The positions the last token depends on, hop by hop, in plain sets."""
    found = {tokens - 1}
    for layer in reversed(range(depth)):
        mask = mask_of(pattern, tokens, layer)
        found = {key for row in found for key in range(tokens) if mask[row, key]}
    return found


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("tokens", [1, 2, 24])
def test_sets_equal_a_walk_in_plain_python(spec, tokens):
    pattern = parse_pattern(spec)
    for depth, found in enumerate(reach(pattern, 5, tokens), 1):
        assert set(np.flatnonzero(found)) == by_hand(pattern, depth, tokens)


@pytest.mark.parametrize("spec", SPECS)
def test_cones_begin_at_the_query_and_end_in_the_sets(spec):
    pattern, tokens = parse_pattern(spec), 24
    depths = [1, 2, 4, 5]
    found = cones(lambda layer: mask_of(pattern, tokens, layer), depths, tokens - 1)
    assert found.shape == (4, 6, tokens)
    for i, depth in enumerate(depths):
        assert set(np.flatnonzero(found[i, 0])) == by_hand(pattern, depth, tokens)
        assert np.flatnonzero(found[i, depth]).tolist() == [tokens - 1]
        assert not found[i, depth + 1 :].any()


def test_a_relay_over_two_layers_of_window_3():
    pattern = parse_pattern("sliding:window=3")
    one, two = reach(pattern, 2, 9)  # the query is position 8
    assert np.flatnonzero(one).tolist() == [6, 7, 8]
    assert np.flatnonzero(two).tolist() == [4, 5, 6, 7, 8]
    cone = cones(lambda layer: mask_of(pattern, 9, layer), [2], 8)[0]
    assert np.flatnonzero(cone[1]).tolist() == [6, 7, 8]  # 4 reaches 8 through 6


@pytest.mark.parametrize(
    ("spec", "layers", "positions", "reached"),
    [
        ("sliding:window=32", 5, 156, 156),
        ("sliding:window=4096", 32, 131_041, 131_041),
        ("dilated:window=4,dilation=2", 5, 16, 31),
        ("layered:windows=3/5", 4, 13, 13),
    ],
)
def test_the_bound_is_met_where_the_text_is_long_enough(spec, layers, positions, reached):
    pattern = parse_pattern(spec)
    limit = bound(pattern, layers)
    assert (limit.positions, limit.span) == (positions, reached)
    assert f"{positions:,}" in limit.formula
    last = reach(pattern, layers, reached + 7)[-1]
    assert (int(last.sum()), span(last)) == (positions, reached)


def test_dilations_by_head_share_one_mask_and_the_widest_sets_the_span():
    pattern = parse_pattern("dilated:window=3,dilation=1/4")
    one, two = reach(pattern, 2, 40)
    assert (39 - np.flatnonzero(one))[::-1].tolist() == [0, 1, 2, 4, 8]
    assert (39 - np.flatnonzero(two))[::-1].tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 16]
    assert span(two) == bound(pattern, 2).span == 17


def test_global_tokens_are_one_hop_away_and_a_full_layer_reaches_everything():
    found = reach(parse_pattern("global:window=3,tokens=0"), 1, 50)[0]
    assert np.flatnonzero(found).tolist() == [0, 47, 48, 49]
    hybrid = parse_pattern("layered:window=4,full_every=3")
    assert [int(found.sum()) for found in reach(hybrid, 3, 50)] == [4, 7, 50]
    assert bound(hybrid, 2).positions == 7 and bound(hybrid, 3).positions is None
    assert "full layer 2" in bound(hybrid, 3).formula


def test_the_sources_round():
    assert rounded(4096, 32) == 131_072
    assert window_bound(4096, 32).positions == 131_041
    assert window_bound(4096, 32, dilation=2).span == 262_081

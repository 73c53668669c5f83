"""Errors of coded keys and values, against a naive loop and against what a run with such a storage really sees."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from kvviz.analysis.precision.errors import Layers, layer_errors
from kvviz.analysis.precision.groups import bytes_held, group_of, keys_of, read_whole
from kvviz.choices.setup import Setup, parse_setup
from kvviz.choices.storage import Int2, Int4, Int8, Native, Quantised
from kvviz.run.replay import replay
from tests.analysis.exactness.stock_runs import double, stock_read
from tests.tiny import some_ids, tiny

TOKENS, GROUP, RESIDUAL = 45, 4, 8
STORAGES = [kind(group=GROUP, residual=RESIDUAL) for kind in (Int8, Int4, Int2)]
FULL = ("llama", "qwen3", "gpt_neox")


@pytest.fixture(scope="module", params=FULL)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def found(name: str) -> Layers:
    return layer_errors(tiny(name), some_ids(TOKENS), STORAGES)


def naive_coded(numbers: Tensor, bits: int) -> Tensor:
    """One group (n,) coded and brought back."""
    low, high = min(numbers.tolist()), max(numbers.tolist())
    scale = (high - low) / (2**bits - 1)
    back = [
        low + scale * min(2**bits - 1, max(0, round((x - low) / scale))) if scale else low for x in numbers.tolist()
    ]
    return torch.tensor(back, dtype=numbers.dtype)


def naive_keys(keys: Tensor, bits: int, way: str) -> Tensor:
    """All keys of one head (T, D) in whole blocks, coded one group after another."""
    out = keys.clone()
    for start in range(0, len(keys) // GROUP * GROUP, GROUP):
        if way == "channel":
            for channel in range(keys.shape[1]):
                out[start : start + GROUP, channel] = naive_coded(keys[start : start + GROUP, channel], bits)
        else:
            for row in range(start, start + GROUP):
                for first in range(0, keys.shape[1], GROUP):
                    out[row, first : first + GROUP] = naive_coded(keys[row, first : first + GROUP], bits)
    return out


@pytest.mark.parametrize("way", ["channel", "token"])
@pytest.mark.parametrize("storage", STORAGES, ids=lambda one: one.name())
def test_keys_are_off_as_a_naive_loop_has_it(name: str, found: Layers, storage: Quantised, way: str) -> None:
    _, cache = stock_read(double(name), some_ids(TOKENS))
    errors = found.errors[storage.name(), way]
    coded = (TOKENS - 1) // RESIDUAL * RESIDUAL
    assert found.coded == coded
    for layer, held in enumerate(cache.layers):
        for head in range(held.keys.shape[1]):
            keys = held.keys[0, head]
            wrong = (naive_keys(keys, storage.bits, way) - keys)[:coded]
            assert errors.keys[layer, head] == pytest.approx(float(wrong.norm() / keys[:coded].norm()), abs=1e-9)
            np.testing.assert_allclose(errors.channels[layer, head], wrong.square().mean(0).sqrt(), atol=1e-9)
            np.testing.assert_allclose(found.sizes[layer, head], keys.abs().mean(0), atol=1e-9)


@pytest.mark.parametrize("storage", STORAGES, ids=lambda one: one.name())
def test_weights_of_layer_0_move_as_in_a_run_that_holds_codes(name: str, found: Layers, storage: Quantised) -> None:
    """There both have the same inputs; the schedule of coding is the run's own."""
    ids = some_ids(TOKENS).tolist()
    heads = range(tiny(name).config.num_attention_heads)
    maps = [(0, head) for head in heads]
    exact = replay(tiny(name), ids, Setup(), maps=maps).maps
    coded = replay(tiny(name), ids, Setup(storage=storage), maps=maps, block=1).maps
    for head in heads:
        moved = np.nan_to_num(coded[0, head] - exact[0, head])[RESIDUAL:]
        expected = np.abs(moved).sum(1).mean() / 2
        assert found.errors[storage.name(), "channel"].weights[0, head] == pytest.approx(expected, abs=1e-7)


def test_fewer_bits_are_worse_and_all_is_a_share(found: Layers) -> None:
    for way in ("channel", "token"):
        for measure in ("keys", "values", "scores", "weights", "output"):
            means = [float(getattr(found.errors[storage.name(), way], measure).mean()) for storage in STORAGES]
            assert 0 < means[0] < means[1] < means[2], measure
        assert found.errors["int2", way].weights.max() <= 1


def test_output_with_coded_values_by_hand(name: str) -> None:
    """The first head of layer 0, query by query: what a value was when its query came, and how far the mix is off."""
    storage = Int2(group=GROUP, residual=RESIDUAL)
    ids = some_ids(RESIDUAL + 5)  # the last query sees four coded values
    found = layer_errors(tiny(name), ids, [storage]).errors["int2", "channel"]
    _, cache = stock_read(double(name), ids)
    values = cache.layers[0].values[0, 0].numpy()
    coded_values = values.copy()
    for place in range(len(ids)):
        for first in range(0, values.shape[1], GROUP):
            part = slice(first, first + GROUP)
            coded_values[place, part] = naive_coded(torch.tensor(values[place, part]), 2)
    runs = [Setup(), Setup(storage=storage)]
    exact, coded = (replay(tiny(name), ids.tolist(), one, maps=[(0, 0)], block=1).maps[0, 0] for one in runs)
    off = []
    for query in range(RESIDUAL, len(ids)):
        seen = values.copy()
        seen[: max(0, query - RESIDUAL)] = coded_values[: max(0, query - RESIDUAL)]
        before = np.nan_to_num(exact[query]) @ values
        off.append(np.linalg.norm(np.nan_to_num(coded[query]) @ seen - before) / np.linalg.norm(before))
    assert found.output[0, 0] == pytest.approx(np.mean(off), abs=1e-6)  # maps are float32
    wrong = np.linalg.norm((coded_values - values)[:4]) / np.linalg.norm(values[:4])
    assert found.values[0, 0] == pytest.approx(wrong, abs=1e-9)


def test_a_group_is_worked_through() -> None:
    keys = keys_of(tiny("llama"), some_ids(TOKENS), 1, 1)
    _, cache = stock_read(double("llama"), some_ids(TOKENS))
    torch.testing.assert_close(keys, cache.layers[1].keys[0, 1], rtol=0, atol=1e-9)
    storage = Int2(group=GROUP, residual=RESIDUAL)
    found = group_of(keys, storage, "channel", 2, 5)
    numbers = keys[8:12, 5]
    assert found.names == (8, 9, 10, 11) and found.low == pytest.approx(float(numbers.min()))
    assert found.scale == pytest.approx(float(numbers.max() - numbers.min()) / 3)
    np.testing.assert_allclose(found.numbers, numbers)
    np.testing.assert_allclose(found.restored, naive_coded(numbers, 2), atol=1e-12)
    np.testing.assert_allclose(found.low + found.scale * found.codes, found.restored, atol=1e-12)
    assert np.abs(found.restored - found.numbers).max() <= found.scale / 2 + 1e-12
    one = group_of(keys, storage, "token", 2, 5)
    assert one.names == (4, 5, 6, 7)
    np.testing.assert_allclose(one.restored, naive_coded(keys[8, 4:8], 2), atol=1e-12)


@pytest.mark.parametrize("storage", [Native(), *STORAGES], ids=lambda one: one.name())
def test_bytes_part_by_part_are_those_of_the_tensors(storage: Quantised) -> None:
    ids, setup = some_ids(TOKENS), Setup(storage=storage)
    held = bytes_held(read_whole(tiny("llama"), ids, setup, block=16))
    trace = replay(tiny("llama"), ids.tolist(), setup)
    assert held.total == trace.cache_bytes
    layers, heads, width, coded = 3, 2, 8, TOKENS // RESIDUAL * RESIDUAL
    if storage.is_exact:
        assert (held.codes, held.scales) == (0, 0)
    else:
        old = TOKENS - RESIDUAL  # values
        assert held.codes == layers * heads * (coded + old) * width * storage.bits // 8
        scales = coded // GROUP * width + old * (width // GROUP)
        assert held.scales == layers * heads * scales * 2 * 8


@pytest.mark.parametrize(
    ("block", "channel", "words"),
    [(99, 0, "There is no block 99: 45 keys make 11 blocks of 4"), (0, 8, "no channel 8: a key of this model has")],
)
def test_a_group_that_is_not_there_is_refused(block: int, channel: int, words: str) -> None:
    keys = keys_of(tiny("llama"), some_ids(TOKENS), 0, 0)
    with pytest.raises(ValueError, match=words):
        group_of(keys, STORAGES[0], "channel", block, channel)
    with pytest.raises(ValueError, match="do not make one block of 64"):
        group_of(keys, Int4(group=64, residual=64), "channel", 0, 0)


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(ValueError, match="choose a smaller residual or at least 9 tokens"):
        layer_errors(tiny("llama"), some_ids(8), STORAGES)
    with pytest.raises(ValueError, match="some of its layers slide"):
        layer_errors(tiny("mistral"), some_ids(TOKENS), STORAGES)
    with pytest.raises(ValueError, match="must be a multiple of group=5"):
        parse_setup({"storage": "int4:group=5,residual=8"})

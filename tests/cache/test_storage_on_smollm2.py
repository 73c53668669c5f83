"""Quantised storage on the real model in float32.

Coding is a step function: a key that float order moves by one part in ten million may get the next code. So single
losses cannot be compared; the mean loss is, to within 5e-3, and the codes that flipped are counted and printed.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kvviz.cache.packed import PackedStore
from kvviz.cache.quantise import unpack
from kvviz.choices.setup import Setup
from kvviz.choices.storage import Int2, Int4, Int8, Native, Quantised, Storage
from kvviz.choices.texts import PRESETS
from kvviz.models import Loaded
from kvviz.models.tokens import encode
from kvviz.run.engine import Pass
from kvviz.run.replay import token_losses
from tests import naive_attention as naive
from tests.naive_storage import quantised

pytestmark = pytest.mark.real
TOKENS, CLOSE = 192, 5e-3


@pytest.fixture(scope="module")
def ids(smollm2: Loaded) -> Tensor:
    return torch.tensor(encode(smollm2.tokenizer, PRESETS["language-reference"].text()[:8000], TOKENS))


def run(smollm2: Loaded, ids: Tensor, storage: Storage, block: int) -> tuple[float, Pass]:
    """The mean loss, and the pass."""
    done = Pass(smollm2.model, Setup(storage=storage), prompt_tokens=len(ids) // 2)
    logits = torch.cat([done.feed(ids[start : start + block]) for start in range(0, len(ids), block)])
    return float(token_losses(logits, ids[1:]).mean()), done


def codes(done: Pass, storage: Quantised) -> Tensor:
    """Every code of keys and values, in the order of layers, heads and slots."""
    parts = []
    for layer in done.slots:
        assert isinstance(layer.store, PackedStore)
        for side in (layer.store.keys, layer.store.values):
            assert side.codes is not None and side.exact is not None and side.places is not None
            width = side.exact.shape[1]
            table = unpack(side.codes.packed, storage.bits, width * side.entries_per_code).view(-1, width)
            parts.append(table[-1 - side.places[side.places < 0]])
    return torch.cat([part.flatten() for part in parts])


@pytest.mark.parametrize("storage", [Int8(32, 32), Int4(32, 32), Int2(32, 32)], ids=str)
def test_block_size_moves_the_mean_loss_by_less_than_flips_explain(
    smollm2: Loaded, ids: Tensor, storage: Quantised, capsys: pytest.CaptureFixture[str]
) -> None:
    expected, first = run(smollm2, ids, storage, 256)
    loss, done = run(smollm2, ids, storage, 64)
    mine, theirs = codes(done, storage), codes(first, storage)
    flips = int((mine != theirs).sum())
    with capsys.disabled():
        print(f"\n{storage.name()}, blocks of 64: mean loss {loss - expected:+.1e} nats, ", end="")
        print(f"{flips:,} of {len(mine):,} codes flipped", end="")
    assert len(mine) == len(theirs) and done.cache_bytes == first.cache_bytes
    assert abs(loss - expected) < CLOSE


def test_a_naive_implementation_has_the_same_mean_loss(smollm2: Loaded, ids: Tensor) -> None:
    few = ids[:80]  # of which 64 keys and 48 values are coded in the end
    theirs = naive.NaiveRun(smollm2.model, naive.h2o(999, 1), 40, store=quantised(4, 32, 32)).read(few)
    loss, _ = run(smollm2, few, Int4(32, 32), 256)
    assert abs(loss - float(token_losses(theirs, few[1:]).mean())) < CLOSE


def test_fewer_bits_cost_more(smollm2: Loaded, ids: Tensor) -> None:
    exact, int8, int4, int2 = (
        run(smollm2, ids, storage, 256)[0] for storage in (Native(), Int8(32, 32), Int4(32, 32), Int2(32, 32))
    )
    assert abs(int8 - exact) < 0.01  # eight bits cost nothing that can be seen
    assert 0.001 < int4 - exact < 0.1  # four cost little
    assert int2 - exact > 5 * (int4 - exact)  # two cost much

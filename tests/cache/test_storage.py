"""Quantised storage in a run: block sizes, a naive second implementation, what is coded when, and its bytes."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from kvviz.cache.opening import open_store
from kvviz.cache.stores import NativeStore, OffloadStore, Side
from kvviz.choices.setup import Setup, parse_setup
from kvviz.choices.storage import Int2, Int4, Int8, Native, Offload, Storage, parse_storage
from kvviz.policies import POLICIES
from kvviz.run.engine import Pass
from kvviz.run.generate import generate
from kvviz.run.replay import open_pass, replay
from tests import naive_attention as naive
from tests.naive_storage import quantised
from tests.policies.test_matrix import BUDGET, TELLING, TOKENS, sized
from tests.tiny import NAMES, ROTARY, some_ids, stock, tiny

SMALL = Int4(group=2, residual=4)


# all policies on one architecture, the telling ones on the others
CASES = [("llama", policy, {}) for policy in POLICIES]
CASES += [("llama", policy, {"softmax": "off_by_one"}) for policy in TELLING]
CASES += [(m, policy, {"positions": "slot"} if m in ROTARY else {}) for m in NAMES for policy in TELLING]


@pytest.mark.parametrize(("model_name", "policy", "words"), CASES)
def test_block_size_changes_nothing(model_name: str, policy: str, words: dict[str, str]) -> None:
    setup, ids = replace(parse_setup(words), policy=sized(policy, BUDGET), storage=SMALL), some_ids(TOKENS)
    results = []
    for block in (1, 3, 256):
        done = open_pass(tiny(model_name), setup, TOKENS // 2, None)
        logits = torch.cat([done.feed(ids[start : start + block]) for start in range(0, TOKENS, block)])
        results.append((logits.log_softmax(-1), [done.evicted_at(), *(done.quantised_at() or ())], done.cache_bytes))
    for logits, histories, cache_bytes in results[1:]:
        assert (logits - results[0][0]).abs().max() < 1e-9
        assert all(torch.equal(mine, first) for mine, first in zip(histories, results[0][1], strict=True))
        assert cache_bytes == results[0][2]


RULES: dict[str, tuple[naive.Rule, bool]] = {
    "full": (naive.h2o(999, 1), False),
    "window:budget=9": (naive.h2o(9, 9), False),
    "h2o:budget=9,recent=4": (naive.h2o(9, 4), False),
    "tova:budget=9": (naive.tova(9), False),
    "snapkv:budget=9,observe=4,kernel=3": (naive.snapkv(9, 4, 3), True),
}


STORED = (Int2(2, 4), Int4(2, 4), Int8(4, 8), Int2(1, 3))
NAIVE_CASES = [("llama", policy, storage) for policy in RULES for storage in STORED]
NAIVE_CASES += [(m, policy, STORED[1]) for m in ("qwen3", "gpt_neox") for policy in list(RULES)[2:]]


@pytest.mark.parametrize(("model_name", "policy", "storage"), NAIVE_CASES, ids=str)
def test_it_equals_a_naive_implementation(model_name: str, policy: str, storage: Storage) -> None:
    """The stock model takes its softmax in float32 even when it computes in float64; the naive one here does not."""
    ids, (rule, after) = some_ids(TOKENS), RULES[policy]
    store = quantised(storage.bits, storage.group, storage.residual)  # type: ignore[attr-defined]
    theirs = naive.NaiveRun(stock(model_name), rule, TOKENS // 2, after, store)
    expected = theirs.read(ids).log_softmax(-1)
    done = Pass(tiny(model_name), replace(parse_setup({"policy": policy}), storage=storage), prompt_tokens=TOKENS // 2)
    logits = done.feed(ids).log_softmax(-1)
    assert (logits - expected).abs().max() < 1e-9
    quantised_at = done.quantised_at()
    assert quantised_at is not None
    key_at, value_at = quantised_at
    for (layer, head), entries in theirs.entries.items():
        held = [e.position for e in entries]
        assert (key_at[layer, head, held] < TOKENS).tolist() == [e.key_is_coded for e in entries]
        assert (value_at[layer, head, held] < TOKENS).tolist() == [e.value_is_coded for e in entries]


def test_whole_key_blocks_are_coded_and_the_last_values_stay_exact() -> None:
    """32 tokens of prompt and 168 more, group 32, residual 32: 192 keys and 168 values are coded at the end.

    Known fault 30: the first forward is quantised whole, the latest entries too.
    Known fault 33: keys that come one by one are never quantised, and are billed as if they were.
    """
    trace = replay(tiny("llama"), some_ids(200).tolist(), Setup(storage=Int2(32, 32)), prompt_tokens=32)
    assert trace.quantised_at is not None
    key_at, value_at = trace.quantised_at
    assert ((key_at < 200).sum(-1) == 192).all() and ((value_at < 200).sum(-1) == 168).all()
    # keys 0–31 are coded after step 31, all at once; value j when 32 later ones are held
    assert (key_at[..., :32] == 31).all() and (key_at[..., 32:64] == 63).all()
    assert (value_at[..., :168] == np.arange(168) + 32).all()


def test_the_length_counts_coded_and_exact_entries() -> None:
    """Known fault 32: the length leaves out what is quantised, so a second question gets wrong positions."""
    done = Pass(tiny("llama"), Setup(storage=SMALL), prompt_tokens=7)
    for start, end in ((0, 7), (7, 8), (8, 21)):
        done.feed(some_ids(21)[start:end])
        assert done.cache.get_seq_length() == end and {layer.store.held for layer in done.slots} == {end}


def test_two_bits_do_harm_and_eight_hardly_any() -> None:
    ids = some_ids(60).tolist()
    exact = replay(tiny("llama"), ids, Setup()).nll
    gaps = [np.abs(replay(tiny("llama"), ids, Setup(storage=s(4, 4))).nll - exact).max() for s in (Int2, Int4, Int8)]
    assert gaps[0] > gaps[1] > gaps[2] > 0


@pytest.mark.parametrize("storage", [Int2(2, 4), Int4(4, 8), Int8(1, 1), Int4(3, 6)], ids=str)
@pytest.mark.parametrize(
    "policy", ["full", "window:budget=9", "h2o:budget=9,recent=4", "random:budget=7", "snapkv:budget=9,observe=4"]
)
def test_bytes_by_the_formula_are_those_of_the_tensors(policy: str, storage: Storage) -> None:
    """After every step, with tensors that really hold codes.

    Known fault 34: numbers are rounded but held at full width, so nothing is saved.
    """
    ids, setup = some_ids(TOKENS), replace(parse_setup({"policy": policy}), storage=storage)
    trace = replay(tiny("llama"), ids.tolist(), setup)
    stepped = open_pass(tiny("llama"), setup, TOKENS // 2, None)
    held = []
    for token in ids:
        stepped.feed(token.view(1))
        held.append(stepped.cache_bytes)
    assert trace.bytes_at().tolist() == held and trace.cache_bytes == held[-1]
    written = generate(tiny("llama"), ids.tolist(), setup, 5)
    assert written.cache_bytes == written.bytes_at()[-1]


def test_a_hand_worked_count_of_bytes() -> None:
    """Six tokens of head size 8 in float64, int4 in blocks of 2, residual 4: keys 0–3 and values 0, 1 are coded."""
    trace = replay(tiny("llama"), some_ids(6).tolist(), Setup(storage=Int4(2, 4)))
    exact = 8 * 8
    key_block = 2 * 8 // 2 + 2 * exact  # 16 codes of half a byte, a scale and a minimum for each of 8 channels
    value = 8 // 2 + 2 * 4 * 8  # 8 codes, four groups of channels
    assert trace.cache_bytes == 3 * 2 * (2 * key_block + 2 * exact + 2 * value + 4 * exact)


def test_a_block_is_freed_with_its_last_entry() -> None:
    setup = replace(parse_setup({"policy": "window:budget=5"}), storage=Int4(4, 4))
    bytes_at = replay(tiny("llama"), some_ids(24).tolist(), setup).bytes_at()
    assert bytes_at[8:].max() == bytes_at[8:16].max() < 6 * bytes_at[0]  # holes do not pile up


def test_two_texts_one_after_another_are_two_fresh_runs() -> None:
    """With codes too: what was reset holds nothing, and the second text finds nothing of the first.

    Known fault 42: a reset leaves a counter or a tensor of the text before.
    """
    setup = Setup(storage=SMALL)
    done = Pass(tiny("llama"), setup, prompt_tokens=15)
    done.feed(some_ids(30, seed=1))
    done.cache.reset()
    assert done.cache_bytes == 0 and done.cache.get_seq_length() == 0
    again = Pass(tiny("llama"), setup, prompt_tokens=15)
    again.slots, again.cache = done.slots, done.cache
    second = some_ids(30, seed=2)
    assert torch.equal(again.feed(second), Pass(tiny("llama"), setup, prompt_tokens=15).feed(second))


def test_recomputation_stores_nothing() -> None:
    setup = parse_setup({"policy": "recompute:budget=8"})
    ids = some_ids(20).tolist()
    coded = replay(tiny("llama"), ids, replace(setup, storage=SMALL))
    assert coded.nll.tolist() == replay(tiny("llama"), ids, setup).nll.tolist() and coded.cache_bytes == 0


def test_a_residual_of_broken_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"residual=30 must be a multiple of group=32.*choose 32"):
        parse_storage("int4:group=32,residual=30")


@pytest.mark.parametrize("dropped", [None, 0, 4, 20], ids=["nothing", "the first", "after four sinks", "far back"])
@pytest.mark.parametrize("heads", [1, 2])
def test_room_to_spare_changes_no_entry(dropped: int | None, heads: int) -> None:
    """A step writes into spare room; a slot that leaves near the front moves those before it; beyond 64 steps too."""
    store, generator = NativeStore(), torch.Generator().manual_seed(0)
    kept = [torch.randn(1, heads, 24, 8, generator=generator) for _ in range(2)]
    store.add(*kept)
    for _ in range(150):
        new = [torch.randn(1, heads, 1, 8, generator=generator) for _ in range(2)]
        kept = [torch.cat(pair, 2) for pair in zip(kept, new, strict=True)]
        assert all(map(torch.equal, store.add(*new), kept))
        if dropped is not None:
            slots = torch.tensor([slot for slot in range(kept[0].shape[2]) if slot != dropped])
            kept = [states[:, :, slots] for states in kept]
            store.retain(slots.expand(heads, -1))
        assert store.entries is not None and all(map(torch.equal, store.entries, kept))
        assert store.held == kept[0].shape[2] and store.nbytes == sum(states.nbytes for states in kept)
        assert store.sides is not None and store.sides[0].room.shape[2] <= store.held + Side.SPARE + 1


def test_offloading_moves_older_entries_and_changes_no_number() -> None:
    store, plain = OffloadStore(3), NativeStore()
    generator = torch.Generator().manual_seed(0)
    for rows in (2, 4, 1, 1):
        new = [torch.randn(1, 2, rows, 8, generator=generator) for _ in range(2)]
        for mine, theirs in zip(store.add(*new), plain.add(*new), strict=True):
            assert torch.equal(mine, theirs)
        store.settle(None)
        assert store.held == plain.held and store.nbytes == plain.nbytes
        assert store.cold_nbytes == 2 * 2 * max(0, store.held - 3) * 8 * 4
    keep = torch.tensor([[0, 3, 6, 7]]).expand(2, -1)
    store.retain(keep)
    plain.retain(keep)
    assert plain.entries is not None and store.entries is not None and store.cold is not None
    assert torch.equal(torch.cat([store.cold[0], store.entries[0]], -2), plain.entries[0])
    assert store.entries[0].shape[-2] == 3 and store.cold[0].shape[-2] == 1  # evicting brings nothing back to stay


@pytest.mark.parametrize("policy", ["full", *(f"{name}:budget=9" for name in ("window", "streaming", "h2o", "random"))])
@pytest.mark.parametrize("block", [1, 5, 256])
def test_offloading_keeps_its_placement_after_every_step_whatever_is_evicted(
    policy: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, with the CPU's memory as both places: beside the model lie three entries of each head, no more."""
    ids, setup = some_ids(TOKENS), replace(parse_setup({"policy": policy}), storage=Offload(3))
    plain = Pass(tiny("llama"), replace(setup, storage=Native()), prompt_tokens=TOKENS // 2).feed(ids)
    monkeypatch.setattr("kvviz.cache.slots.open_store", lambda storage, device: OffloadStore(storage.resident))
    done = Pass(tiny("llama"), setup, prompt_tokens=TOKENS // 2)
    rows = []
    for start in range(0, TOKENS, block):
        rows.append(done.feed(ids[start : start + block]))
        for layer in done.slots:
            assert isinstance(layer.store, OffloadStore) and layer.store.entries is not None
            assert layer.store.entries[0].shape[-2] == min(3, layer.store.held)
            assert layer.store.cold_nbytes == 2 * 2 * max(0, layer.store.held - 3) * 8 * 8
    assert (torch.cat(rows) - plain).abs().max() < 1e-9


def test_without_a_gpu_there_is_nothing_to_offload() -> None:
    assert type(open_store(Offload(), torch.device("cpu"))) is NativeStore
    trace = replay(tiny("llama"), some_ids(8).tolist(), Setup(storage=Offload()))
    assert any("nothing to offload" in note for note in trace.notes)
    assert not replay(tiny("llama"), some_ids(8).tolist(), Setup(storage=Native())).notes


def test_a_coded_storage_that_codes_nothing_says_so() -> None:
    """With a budget below the residual nothing is ever coded, and the native numbers looked like int4's."""
    ids = some_ids(TOKENS).tolist()
    small = parse_setup({"policy": "window:budget=6", "storage": "int4:group=8,residual=16"})
    trace = replay(tiny("llama"), ids, small)
    note = next(note for note in trace.notes if note.startswith("int4 changed nothing here"))
    assert "no head ever held more than 6" in note
    assert not any(
        "changed nothing" in note for note in replay(tiny("llama"), ids, replace(small, storage=SMALL)).notes
    )


def test_int8_in_bfloat16_says_how_far_off_it_is() -> None:
    model, ids = deepcopy(tiny("llama")).to(torch.bfloat16), some_ids(TOKENS).tolist()
    trace = replay(model, ids, parse_setup({"storage": "int8:group=2,residual=4"}))
    assert any("within about one step of its code" in note for note in trace.notes)

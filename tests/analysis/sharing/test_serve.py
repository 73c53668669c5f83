"""Prompts over shared blocks answer as fresh runs do, and the tensors are those that the bookkeeping says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from kvviz.analysis.sharing.serve import serve
from kvviz.models import Loaded, tokens
from kvviz.run.progress import Cancelled
from kvviz.run.reading import Reading
from tests.analysis.exactness.stock_runs import double, row_gaps
from tests.tiny import NAMES, some_ids, tiny

BASE = some_ids(20).tolist()
PROMPTS = [[*BASE, 1, 2, 3], [*BASE, 5], [*BASE[:9], 7, *BASE[10:]], [*BASE, 1, 2, 3], BASE]
EACH = 3 * 2 * 2 * 8 * 8  # bytes a token of the tiny Llama: layers, keys and values, KV heads, channels, float64


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("block", [1, 4, 16])
def test_answers_are_those_of_a_fresh_run(name: str, block: int) -> None:
    found = serve(tiny(name), PROMPTS, block=block)
    shared = [0, 20, 9, 22, 19]  # with what the earlier ones; the last token is always computed
    assert [one.hit_tokens for one in found.prompts] == [count // block * block for count in shared]
    assert found.largest_gap <= 1e-9
    assert [len(one.gaps) for one in found.prompts] == [one.tokens - one.hit_tokens for one in found.prompts]


@pytest.mark.parametrize("name", NAMES)
def test_both_runs_are_the_stock_models(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second computation is the stock model's own: of what was read over shared blocks, and of the fresh run."""
    read, plain = [], Reading.read

    def watched(self: Reading, *args: Any, **more: Any) -> torch.Tensor:
        read.append((self.held, plain(self, *args, **more)))
        return read[-1][1]

    monkeypatch.setattr(Reading, "read", watched)
    found = serve(tiny(name), PROMPTS, block=4)
    runs = iter(read)
    for tokens_of, one in zip(PROMPTS, found.prompts, strict=True):
        with (
            torch.inference_mode()
        ):  # without a mask of ours: windows of the model's own are the stock model's to honour
            whole = double(name)(input_ids=torch.tensor([tokens_of]), use_cache=False).logits[0]
        for held in (one.hit_tokens, 0):
            before, logits = next(runs)
            assert before == held and float(row_gaps(logits, whole[held:]).max()) <= 1e-9


def test_bytes_are_those_of_the_distinct_blocks() -> None:
    found = serve(tiny("llama"), PROMPTS[:2], block=1)
    assert found.bytes_alone == EACH * (23 + 21) and found.bytes_shared == EACH * (20 + 3 + 1) and found.blocks == 24
    whole = serve(tiny("llama"), PROMPTS[:2], block=16)
    assert whole.bytes_shared == EACH * (16 + 7 + 5) and whole.blocks == 3


def test_under_a_budget_old_prompts_are_closed_and_leaves_evicted() -> None:
    found = serve(tiny("llama"), PROMPTS, block=4, limit=6)
    assert found.blocks <= 6 and found.largest_gap <= 1e-9
    kinds = [event.kind for step in found.steps for event in step.events]
    assert "evict" in kinds and "free" in kinds
    assert any("closed, for room is needed" in step.words for step in found.steps)
    free = serve(tiny("llama"), PROMPTS, block=4)
    assert sum(one.hit_tokens for one in found.prompts) <= sum(one.hit_tokens for one in free.prompts)


@pytest.mark.parametrize("length", [7, 8])
def test_two_answers_copy_what_both_hold(length: int) -> None:
    found = serve(tiny("llama"), [BASE[:length], BASE[:length]], block=4, answers=2)
    copies = [event for step in found.steps for event in step.events if event.kind == "copy"]
    assert bool(copies) == (length % 4 != 0) and found.largest_gap <= 1e-9
    assert max(references for step in found.steps for _, references, _ in step.blocks) >= 2


@settings(max_examples=15, deadline=None)
@given(
    some.lists(some.lists(some.integers(0, 1), min_size=1, max_size=9), min_size=1, max_size=5),
    some.integers(1, 4),
    some.sampled_from([None, 12]),
    some.integers(1, 2),
)
def test_random_prompts_answer_as_fresh_ones(
    texts: list[list[int]], block: int, limit: int | None, answers: int
) -> None:
    found = serve(tiny("llama"), texts, block=block, limit=limit, answers=answers)
    assert found.largest_gap <= 1e-9
    held = sum(count for _, _, count in found.steps[-1].blocks)
    assert found.bytes_shared == EACH * held


@pytest.mark.parametrize(
    ("texts", "more", "words"),
    [
        ([[1], []], {}, "Prompt 2 is empty"),
        ([], {}, "There is no prompt"),
        ([[1]], {"block": 0}, "Blocks of 0 tokens are not possible; choose from 1 to 256"),
        ([[1, 2, 3]], {"block": 2, "limit": 1}, "Prompt 1 needs 2 blocks of 2 and the budget is 1"),
        ([[1, 2, 3], [1] * 9], {"block": 2, "limit": 1}, "Prompt 2 needs 5 blocks of 2 and the budget is 1; choose a"),
        ([[1, 2]], {"block": 2, "limit": 2, "answers": 2}, "Prompt 1 needs 3 blocks of 2"),
        ([[1]], {"answers": 3}, "3 answers to a prompt"),
    ],
)
def test_nonsense_is_refused(texts: list[list[int]], more: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        serve(tiny("llama"), texts, **more)  # type: ignore[arg-type]


def test_it_can_be_cancelled() -> None:
    with pytest.raises(Cancelled):
        serve(tiny("llama"), PROMPTS, is_cancelled=lambda: True)


@pytest.mark.real
def test_smollm2_over_shared_blocks(smollm2: Loaded) -> None:
    """Measured: 4.6e-5 nats."""
    start = "You are a helpful assistant. Answer in one sentence, in plain words, and say where you know it from. "
    texts = [f"{start}Today is Monday. What is a cache?", f"{start}Today is Tuesday. What is a cache?"]
    ids = [tokens.encode(smollm2.tokenizer, text, 200) for text in texts]
    found = serve(smollm2.model, ids, block=8)
    second = found.prompts[1]
    assert second.difference is not None and second.difference.position is not None
    assert second.hit_tokens == second.difference.position // 8 * 8 > 0
    assert found.largest_gap <= 2e-4
    assert np.isfinite(second.seconds) and found.bytes_shared < found.bytes_alone

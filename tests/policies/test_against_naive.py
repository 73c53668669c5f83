"""Every attention-reading policy against a second implementation, on tiny models in float64 and on SmolLM2."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kvviz.choices.setup import parse_setup
from kvviz.choices.texts import PRESETS
from kvviz.models import Loaded
from kvviz.models.tokens import encode
from kvviz.run.engine import Pass
from tests import naive_attention as naive
from tests.tiny import some_ids, stock, tiny

TINY = {
    "h2o:budget=9,recent=4": naive.h2o(9, 4),
    "h2o:budget=9,recent=3,sinks=2,normalise=1": naive.h2o(9, 3, 2, True),
    "attention_window:budget=9,recent=3,observe=5": naive.attention_window(9, 3, 5),
    "tova:budget=7": naive.tova(7),
    "snapkv:budget=9,observe=4,kernel=3": naive.snapkv(9, 4, 3),
    "snapkv:budget=9,observe=4,kernel=5,pooling=max": naive.snapkv(9, 4, 5, largest=True),
    "pyramidkv:budget=9,observe=4,kernel=3,beta=5": naive.snapkv(9, 4, 3, beta=5),
}
REAL = {
    "h2o:budget=32,recent=16,sinks=4,normalise=1": naive.h2o(32, 16, 4, True),
    "attention_window:budget=32,recent=16,observe=16": naive.attention_window(32, 16, 16),
    "tova:budget=32": naive.tova(32),
    "pyramidkv:budget=32,observe=16,kernel=5,beta=20": naive.snapkv(32, 16, 5, beta=20),
}


def kept_by_kvviz(done: Pass) -> dict[tuple[int, int], list[list[int]]]:
    lifetimes = done.evicted_at()
    steps = torch.arange(lifetimes.shape[-1])
    return {
        (layer, head): [
            ((steps <= step) & (lifetimes[layer, head] > step)).nonzero()[:, 0].tolist() for step in steps.tolist()
        ]
        for layer in range(lifetimes.shape[0])
        for head in range(lifetimes.shape[1])
    }


def run(model, ids: Tensor, policy: str, prompt: int) -> tuple[Tensor, Pass]:  # type: ignore[no-untyped-def]
    done = Pass(model, parse_setup({"policy": policy}), prompt_tokens=prompt)
    return torch.cat([done.feed(ids[start : start + 16]) for start in range(0, len(ids), 16)]), done


@pytest.mark.parametrize("policy", list(TINY))
@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_tiny_models_keep_and_predict_the_same(name: str, policy: str) -> None:
    """Known fault 18: scores come per query head where the cache has fewer KV heads."""
    ids = some_ids(36)
    second = naive.NaiveRun(stock(name), TINY[policy], 20, after="kv:" in policy)
    expected = second.read(ids)
    logits, done = run(tiny(name), ids, policy, 20)
    assert kept_by_kvviz(done) == second.kept
    assert (logits - expected).abs().max() < 1e-9


@pytest.mark.real
@pytest.mark.parametrize("policy", list(REAL))
def test_smollm2_keeps_and_predicts_the_same(smollm2: Loaded, policy: str) -> None:
    """Equal sets at every step in all 90 heads; where two scores were closer than rounding, the test would say so.

    The tolerance is that of tests/run/test_real_model.py for policies that lose the sinks.
    """
    text = PRESETS["language-reference"].text()[:4000]
    ids = torch.tensor(encode(smollm2.tokenizer, text, 56))
    second = naive.NaiveRun(smollm2.model, REAL[policy], 40, after="kv:" in policy)
    expected = second.read(ids).log_softmax(-1)
    logits, done = run(smollm2.model, ids, policy, 40)
    mine = kept_by_kvviz(done)
    steps = range(len(ids))
    different = [(place, step) for place in mine for step in steps if mine[place][step] != second.kept[place][step]]
    assert different == []
    assert (logits.log_softmax(-1) - expected).abs().max() < 1.4e-3

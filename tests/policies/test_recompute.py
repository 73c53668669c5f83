"""Re-computation against the stock model on each window, and against the cached window where they must agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kvviz.choices.setup import parse_setup
from kvviz.run.generate import generate
from kvviz.run.recompute import AFFORDABLE_TOKENS, sample
from kvviz.run.replay import replay
from tests.tiny import NAMES, one_layer, some_ids, stock, tiny

TOKENS, BUDGET = 24, 7
SETUP = parse_setup({"policy": f"recompute:budget={BUDGET}"})


@pytest.mark.parametrize("name", NAMES)
def test_every_loss_is_that_of_a_fresh_forward_over_the_window(name: str) -> None:
    """Known fault 37: a cached window, a window computed anew and sliding attention are taken for one another."""
    ids = some_ids(TOKENS)
    trace = replay(tiny(name), ids, SETUP)
    for t in range(TOKENS - 1):
        window = ids[max(0, t - BUDGET + 1) : t + 1]
        with torch.inference_mode():
            row = stock(name)(input_ids=window[None], use_cache=False).logits[0, -1].log_softmax(-1)
        assert trace.nll[t] == pytest.approx(float(-row[ids[t + 1]]), abs=2e-6)


def test_it_holds_nothing_and_keeps_the_window_in_sight() -> None:
    trace = replay(tiny("llama"), some_ids(TOKENS), SETUP, measure=True, maps=[(2, 1)])
    assert trace.cache_bytes == 0 and (trace.bytes_at() == 0).all()
    assert trace.kept(0, 0, 20).tolist() == list(range(14, 21))
    seen = np.isfinite(trace.maps[2, 1])
    assert [np.flatnonzero(row).tolist() for row in seen[[3, 20]]] == [[0, 1, 2, 3], list(range(14, 21))]


def test_it_differs_from_the_cached_window_when_there_is_more_than_one_layer() -> None:
    """The window's keys were computed from states that had seen further back.

    Known fault 37: a cached window, a window computed anew and sliding attention are taken for one another.
    """
    ids = some_ids(TOKENS)
    cached = replay(tiny("llama"), ids, parse_setup({"policy": f"window:budget={BUDGET}"}))
    fresh = replay(tiny("llama"), ids, SETUP)
    assert fresh.nll[: BUDGET - 1] == pytest.approx(cached.nll[: BUDGET - 1], abs=1e-9)
    assert np.abs(fresh.nll[BUDGET:] - cached.nll[BUDGET:]).max() > 1e-3


def test_with_one_layer_it_is_the_cached_window() -> None:
    """A key of the first layer depends on its token alone, and RoPE on distances alone.

    Known fault 37: a cached window, a window computed anew and sliding attention are taken for one another.
    """
    ids, model = some_ids(TOKENS), one_layer()
    cached = replay(model, ids, parse_setup({"policy": f"window:budget={BUDGET}"}))
    # transformers rounds cosines and sines to float32
    assert replay(model, ids, SETUP).nll == pytest.approx(cached.nll, abs=1e-5)


def test_a_long_text_is_sampled_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvviz.run.recompute.AFFORDABLE_TOKENS", 0)
    trace = replay(tiny("llama"), some_ids(60), parse_setup({"policy": "recompute:budget=8"}), measure=True)
    computed = np.isfinite(trace.nll)
    assert computed[:8].all() and computed.sum() == 8 + 15  # the last of the 16 has no next token to predict
    assert "16 of the 52 later positions" in trace.notes[0]
    assert np.isnan(trace.measures["sink_mass"]).any()


def test_samples_are_even_and_end_at_the_last_position() -> None:
    assert sample(20, 20) == frozenset() and sample(5, 20) == frozenset()
    assert sample(40, 20) == frozenset(range(20, 40))
    many = sorted(sample(100_000, 256))
    assert len(many) == AFFORDABLE_TOKENS // 256 and many[-1] == 99_999
    assert max(np.diff(many)) - min(np.diff(many)) <= 1


def test_it_generates() -> None:
    prompt = some_ids(10).tolist()
    written = generate(tiny("llama"), prompt, SETUP, 6)
    replayed = replay(tiny("llama"), written.token_ids, SETUP, prompt_tokens=10)
    assert written.nll == pytest.approx(replayed.nll, abs=1e-9) and written.cache_bytes == 0

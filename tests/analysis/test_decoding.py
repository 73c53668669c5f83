"""What a step reads, computes and takes: bytes and work against the running model, and the refusal of a long run."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from kvviz.analysis import estimate
from kvviz.analysis.decoding import STEPS, counted_step, read_bandwidth, step_costs, weight_bytes
from kvviz.analysis.estimate import duration, refuse_long, work
from kvviz.choices.setup import Setup, parse_setup
from kvviz.run.generate import generate
from kvviz.text.prose import prose
from tests.tiny import CONFIGS, some_ids, tiny

SETUPS = ("full", "window:budget=8", "streaming:budget=8,sinks=2", "snapkv:budget=8,observe=4")


@pytest.mark.parametrize("policy", SETUPS)
def test_steps_at_every_length_hold_what_the_formula_says(policy: str) -> None:
    setup = parse_setup({"policy": policy})
    costs = step_costs(tiny("llama"), some_ids(40).tolist(), setup, [16, 40])
    assert [cost.tokens for cost in costs] == [16, 40]
    for cost in costs:
        assert 0 < cost.low <= cost.seconds <= cost.high
        # the last new token is chosen and not read; a prompt of P stays the prompt
        written = generate(tiny("llama"), some_ids(40).tolist()[: cost.tokens], setup, STEPS + 1)
        assert cost.cache_bytes == written.cache_bytes
        if not setup.policy.acts_once:
            assert cost.cache_bytes == counted_step(tiny("llama"), setup, cost.tokens + STEPS)[0]


def test_a_length_that_the_text_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"41 tokens cannot be cut from a text of 40"):
        step_costs(tiny("llama"), some_ids(40).tolist(), Setup(), [16, 41])


def test_the_weights_read_are_those_of_the_products() -> None:
    """A tied table is the output's too and is read whole; an untied one gives one row."""
    config = deepcopy(CONFIGS["llama"])
    for is_tied in (True, False):
        config.tie_word_embeddings = is_tied
        model = AutoModelForCausalLM.from_config(config).double()
        products = sum(m.weight.numel() for m in model.modules() if isinstance(m, nn.Linear))
        small = sum(p.numel() for name, p in model.named_parameters() if "norm" in name)
        assert weight_bytes(model) == 8 * (products + small)


def test_work_with_the_cache_is_that_of_every_query_head() -> None:
    config = tiny("llama").config
    head = config.hidden_size // config.num_attention_heads
    held, weights, cached = counted_step(tiny("llama"), Setup(), 100)
    by_hand = sum(
        2 * head * 100  # one product with each key, one with each value
        for layer in range(config.num_hidden_layers)
        for query_head in range(config.num_attention_heads)
    )
    assert cached == by_hand and weights == weight_bytes(tiny("llama")) // 8
    assert held == 2 * config.num_hidden_layers * config.num_key_value_heads * head * 100 * 8


def test_reading_grows_with_the_context_and_work_with_weights_does_not() -> None:
    """32 times as many tokens are 32 times as many bytes for the full cache, and as many as before for a window."""
    near, far = (counted_step(tiny("llama"), Setup(), tokens) for tokens in (4096, 131_072))
    assert far[0] == 32 * near[0] and far[2] == 32 * near[2] and far[1] == near[1]
    window = parse_setup({"policy": "window:budget=64"})
    assert counted_step(tiny("llama"), window, 4096) == counted_step(tiny("llama"), window, 131_072)


def test_a_gigabyte_is_read_in_less_than_seconds_and_more_than_nothing() -> None:
    assert 2e8 < read_bandwidth(torch.device("cpu")) < 1e13


def test_a_run_that_would_take_too_long_is_refused_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "seconds_per_token", lambda model: 0.003)
    refuse_long(tiny("llama"), 100_000, 600, "choose fewer")
    with pytest.raises(ValueError) as caught:
        refuse_long(tiny("llama"), 400_000, 600, "choose fewer tokens")
    assert str(caught.value) == (
        "This would take about 20 min here (400,000 tokens to read, 3 ms each), more than the limit of 10 min; "
        "choose fewer tokens."
    )


def test_the_pace_is_measured_once_a_model() -> None:
    pace = estimate.seconds_per_token(tiny("llama"))
    assert 0 < pace < 1 and estimate.seconds_per_token(tiny("llama")) == pace


def test_what_reads_row_by_row_or_anew_is_more_work() -> None:
    words = ("window:budget=8", "snapkv:budget=8,observe=4", "h2o:budget=8", "recompute:budget=8")
    window, snapkv, h2o, recompute = (work(parse_setup({"policy": word}), 100) for word in words)
    assert 100 < window == snapkv < h2o < recompute == 800


def test_durations_in_the_unit_that_fits() -> None:
    assert [duration(seconds) for seconds in (5, 240, 7200)] == ["5 s", "4 min", "2.0 h"]


def test_the_softmax_of_flashattention_as_the_note_writes_it_is_full_attention() -> None:
    """m′ = max(m, max s), ℓ′ = e^(m−m′) ℓ + Σ e^(s−m′), o′ = e^(m−m′) o + Σ e^(s−m′) v, o/ℓ: nothing is forgotten."""
    said = prose("speed")
    for words in ("m′ = max(m, max s)", "ℓ′ = e^(m−m′) ℓ + Σ e^(s−m′)", "o′ = e^(m−m′) o + Σ e^(s−m′) v"):
        assert words in said
    scores = torch.randn(40, dtype=torch.float64) * 5
    values = torch.randn(40, 3, dtype=torch.float64)
    m, total, out = torch.tensor(-torch.inf, dtype=torch.float64), torch.zeros(()), torch.zeros(3)
    for s, v in zip(scores.split(7), values.split(7), strict=True):
        new = torch.maximum(m, s.max())
        total = (m - new).exp() * total + (s - new).exp().sum()
        out = (m - new).exp() * out + (s - new).exp() @ v
        m = new
    assert torch.allclose(out / total, scores.softmax(0) @ values, rtol=0, atol=1e-12)

from __future__ import annotations

import pytest
import torch

from kvviz.choices.setup import Setup, parse_setup
from kvviz.run.generate import choose, generate
from kvviz.run.replay import replay
from tests.tiny import NAMES, some_ids, stock, tiny

PROMPT = some_ids(20).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_full_writes_what_the_stock_model_writes(name: str) -> None:
    ids = torch.tensor([PROMPT])
    expected = stock(name).generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    trace = generate(tiny(name), PROMPT, Setup(), 12)
    assert trace.chosen is not None and trace.chosen.tolist() == expected[0, 20:].tolist()


@pytest.mark.parametrize("policy", ["full", "window:budget=7", "streaming:budget=8,sinks=2", "random:budget=6"])
@pytest.mark.parametrize("name", NAMES)
def test_generating_equals_replaying_the_same_tokens(name: str, policy: str) -> None:
    setup = parse_setup({"policy": policy})
    written = generate(tiny(name), PROMPT, setup, 12)
    replayed = replay(tiny(name), written.token_ids, setup, prompt_tokens=20, block=64)
    assert (written.evicted_at == replayed.evicted_at).all()
    assert written.nll == pytest.approx(replayed.nll, abs=1e-9)
    assert written.cache_bytes == replayed.cache_bytes == replayed.bytes_at()[-1]
    assert written.kind == "generated" and written.tokens == 20 + 12 - 1


def test_it_stops_at_a_stop_token_and_reports_times() -> None:
    free = generate(tiny("llama"), PROMPT, Setup(), 6)
    assert free.chosen is not None and free.ttft_seconds and free.tokens_per_second
    stopped = generate(tiny("llama"), PROMPT, Setup(), 6, stop_at={int(free.chosen[0])})
    assert stopped.chosen is not None and len(stopped.chosen) == 1 and stopped.tokens_per_second is None


def test_a_seed_repeats_a_draw() -> None:
    def drawn(seed: int) -> list[int]:
        trace = generate(tiny("llama"), PROMPT, Setup(), 10, temperature=2.0, top_p=0.9, seed=seed)
        assert trace.chosen is not None
        return trace.chosen.tolist()

    assert drawn(1) == drawn(1) != drawn(2)


def test_top_p_draws_from_the_smallest_set_that_reaches_it() -> None:
    logits = torch.tensor([0.5, 0.3, 0.2]).log()
    generator = torch.Generator().manual_seed(0)
    assert {choose(logits, 1.0, 0.5, generator) for _ in range(100)} == {0}
    assert {choose(logits, 1.0, 0.6, generator) for _ in range(100)} == {0, 1}
    assert choose(logits, 0.0, 1.0, generator) == 0


@pytest.mark.parametrize(
    "options",
    [{"max_new_tokens": 0}, {"temperature": -1.0}, {"temperature": float("nan")}, {"top_p": 0.0}, {"top_p": 1.5}],
)
def test_bad_sampling_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        generate(tiny("llama"), PROMPT, Setup(), **{"max_new_tokens": 3, **options})  # type: ignore[arg-type]


def test_more_new_tokens_than_learned_positions_are_refused_before_the_run() -> None:
    with pytest.raises(ValueError, match="choose at most 57 new tokens"):
        generate(tiny("gpt2"), some_ids(200).tolist(), Setup(), 100)
    assert len(generate(tiny("gpt2"), some_ids(254).tolist(), Setup(), 3).chosen) == 3

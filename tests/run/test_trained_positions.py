"""Beyond the positions that a model was trained on nothing runs; what counts is how many a query and its keys span."""

from __future__ import annotations

from functools import cache

import pytest
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, PreTrainedModel

from kvviz.choices.setup import Setup, parse_setup
from kvviz.run.engine import Pass
from kvviz.run.generate import generate
from kvviz.run.refusals import positions_used
from kvviz.run.replay import replay
from tests.tiny import GQA, some_ids, tiny

TRAINED = 16
YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": TRAINED}


@cache
def short(trained: int = TRAINED) -> PreTrainedModel:
    """The tiny Llama, trained on so many positions by its own word."""
    config = LlamaConfig(**{**GQA, "max_position_embeddings": trained})
    model = AutoModelForCausalLM.from_config(config).double().eval().requires_grad_(False)
    model.load_state_dict(tiny("llama").state_dict())
    return model


def setup_of(policy: str, positions: str = "original") -> Setup:
    return parse_setup({"policy": policy, "positions": positions})


@pytest.mark.parametrize("policy", ["full", "window:budget=4", "h2o:budget=4"])
def test_original_positions_end_with_the_training(policy: str) -> None:
    replay(short(), some_ids(TRAINED).tolist(), setup_of(policy))
    with pytest.raises(
        ValueError, match=r"needs 17 positions and this llama model was trained on 16; choose positions="
    ):
        replay(short(), some_ids(TRAINED + 1).tolist(), setup_of(policy))


def test_the_engine_itself_refuses_the_block_that_goes_beyond() -> None:
    run = Pass(short(), Setup(), prompt_tokens=4)
    run.feed(some_ids(TRAINED))
    with pytest.raises(ValueError, match="full needs 17 positions"):
        run.feed(some_ids(1))


@pytest.mark.parametrize(
    "policy", ["window:budget=4", "streaming:budget=16,sinks=2", "h2o:budget=6,recent=3", "tova:budget=6"]
)
def test_slots_of_a_bounded_cache_never_run_out(policy: str) -> None:
    """And the answer is that of the same weights whose config allows the text."""
    ids, setup = some_ids(60).tolist(), setup_of(policy, "slot")
    assert replay(short(), ids, setup).nll.tolist() == replay(short(256), ids, setup).nll.tolist()


def test_slots_of_a_cache_that_grows_run_out() -> None:
    for policy, used in (("full", 20), ("streaming:budget=17,sinks=2", 17)):
        with pytest.raises(
            ValueError, match=rf"needs {used} positions.*never holds more than 16 tokens, or at most 16"
        ):
            replay(short(), some_ids(20).tolist(), setup_of(policy, "slot"))


def test_what_a_policy_adds_after_the_prompt_counts() -> None:
    snapkv = setup_of("snapkv:budget=4,observe=2,kernel=1", "slot")
    used = [positions_used(short(), snapkv, tokens, prompt) for tokens, prompt in ((18, 8), (30, 8), (30, 20))]
    assert used == [14, 26, 20]  # 4 of the prompt and 10 more; 22 more; the whole prompt, before anything left
    replay(short(), some_ids(18).tolist(), snapkv, prompt_tokens=8)
    with pytest.raises(ValueError, match="needs 26 positions"):
        replay(short(), some_ids(30).tolist(), snapkv, prompt_tokens=8)


def test_writing_is_refused_before_it_begins() -> None:
    prompt = some_ids(10).tolist()
    chosen = generate(short(), prompt, Setup(), 7).chosen  # the last one is not read
    assert chosen is not None and len(chosen) == 7
    with pytest.raises(ValueError, match=r"full needs 17 positions.*at most 16 tokens"):
        generate(short(), prompt, Setup(), 8)
    written = generate(short(), prompt, setup_of("window:budget=8", "slot"), 20).chosen
    assert written is not None and len(written) == 20


def test_recomputation_begins_every_window_at_position_0() -> None:
    assert replay(short(), some_ids(24).tolist(), setup_of("recompute:budget=8")).tokens == 24
    with pytest.raises(ValueError, match=r"recompute:budget=20 needs 20 positions.*a policy that never holds more"):
        replay(short(), some_ids(24).tolist(), setup_of("recompute:budget=20"))


def test_a_scaling_says_its_length_and_a_window_bounds_slots() -> None:
    config = LlamaConfig(**{**GQA, "max_position_embeddings": 4 * TRAINED}, rope_parameters=dict(YARN))
    model = AutoModelForCausalLM.from_config(config).double().eval().requires_grad_(False)
    assert replay(model, some_ids(4 * TRAINED).tolist(), Setup()).tokens == 64
    with pytest.raises(ValueError, match="trained on 64"):
        replay(model, some_ids(4 * TRAINED + 1).tolist(), Setup())
    sliding = AutoModelForCausalLM.from_config(MistralConfig(**GQA, sliding_window=12))
    assert positions_used(sliding, setup_of("full", "slot"), 40, 20) == 12

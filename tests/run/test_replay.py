from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch

from kvviz.choices.setup import Setup, parse_setup
from kvviz.measures.attention import MEASURES
from kvviz.run.engine import Pass
from kvviz.run.progress import Cancelled
from kvviz.run.replay import replay
from tests.tiny import NAMES, some_ids, stock, tiny

IDS = some_ids(40).tolist()


@pytest.mark.parametrize("name", ["llama", "gpt_neox", "qwen3"])
def test_losses_are_those_of_the_stock_model(name: str) -> None:
    with torch.inference_mode():
        logits = stock(name)(input_ids=torch.tensor([IDS]), use_cache=False).logits[0]
    expected = -logits.log_softmax(-1)[:-1].gather(1, torch.tensor(IDS[1:])[:, None])[:, 0]
    trace = replay(tiny(name), IDS, Setup(), block=16)
    assert trace.nll == pytest.approx(expected.numpy(), abs=2e-6)
    assert trace.kind == "replayed" and trace.prompt_tokens == 20 and len(trace.nll) == 39


@pytest.mark.parametrize("words", [{"policy": "window:budget=7"}, {"policy": "streaming:budget=8,sinks=2"}])
@pytest.mark.parametrize("name", NAMES)
def test_bytes_by_formula_are_the_tensors_own(name: str, words: dict[str, str]) -> None:
    trace = replay(tiny(name), IDS, parse_setup(words), block=16)
    assert trace.bytes_at()[-1] == trace.cache_bytes


@pytest.mark.parametrize("name", NAMES)
def test_captured_weights_equal_the_stock_eager_models(name: str) -> None:
    with torch.inference_mode():
        expected = stock(name)(input_ids=torch.tensor([IDS]), use_cache=False, output_attentions=True).attentions
    places = [(layer, head) for layer in range(3) for head in range(4)]
    trace = replay(tiny(name), IDS, Setup(), block=16, maps=places)
    for layer, head in places:
        mine = torch.from_numpy(trace.maps[layer, head].copy()).nan_to_num(0)
        assert (mine - expected[layer][0, head]).abs().max() < 1e-5
        assert mine.sum(-1).numpy() == pytest.approx(1, abs=1e-5)


def test_measures_do_not_depend_on_the_block() -> None:
    setup = parse_setup({"policy": "random:budget=9"})
    steps = replay(tiny("llama"), IDS, setup, block=1, measure=True, maps=[(1, 2)])
    whole = replay(tiny("llama"), IDS, setup, block=256, measure=True, maps=[(1, 2)])
    for name in MEASURES:
        assert steps.measures[name] == pytest.approx(whole.measures[name], abs=1e-5)
    for name in ("received", "first_weights", "key_norm", "value_norm"):
        assert getattr(steps, name) == pytest.approx(getattr(whole, name), abs=1e-5)
    assert steps.maps[1, 2] == pytest.approx(whole.maps[1, 2], abs=1e-6, nan_ok=True)


def test_measuring_does_not_change_the_losses() -> None:
    setup = parse_setup({"policy": "streaming:budget=8,sinks=2"})
    plain = replay(tiny("llama"), IDS, setup, block=8)
    measured = replay(tiny("llama"), IDS, setup, block=8, measure=True)
    assert plain.nll == pytest.approx(measured.nll, abs=1e-12)


def test_sink_mass_is_read_off_the_map() -> None:
    trace = replay(tiny("llama"), IDS, Setup(), measure=True, sinks=2, maps=[(0, 0)])
    assert trace.sink_tokens == 2 and trace.query_heads == 4
    assert trace.measures["sink_mass"][0, 0, 2:] == pytest.approx(trace.maps[0, 0][2:, :2].sum(-1), abs=1e-6)


def test_off_by_one_rows_sum_to_less_than_one() -> None:
    trace = replay(tiny("llama"), IDS, parse_setup({"policy": "full", "softmax": "off_by_one"}), maps=[(0, 0)])
    sums = torch.from_numpy(trace.maps[0, 0].copy()).nansum(-1)
    assert (sums < 1).all() and (sums > 0).all()


@pytest.mark.parametrize(
    ("ids", "options", "sentence"),
    [
        ([], {}, "The text is empty"),
        ([99], {}, "Token 99 does not exist: this model knows tokens 0–63"),
        ([-1, 3], {}, "Token -1 does not exist"),
        ([1, 2], {"prompt_tokens": 3}, "The prompt cannot end after 3 of 2 tokens"),
        ([1, 2], {"prompt_tokens": 0}, "choose a number from 1 to 2"),
        ([1, 2], {"block": 0}, "block=0"),
    ],
)
def test_bad_input_is_one_sentence(ids: list[int], options: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replay(tiny("llama"), ids, Setup(), **options)


def test_one_token_is_a_text_without_losses() -> None:
    trace = replay(tiny("llama"), [5], parse_setup({"policy": "window:budget=1"}), measure=True, maps=[(0, 0)])
    assert len(trace.nll) == 0 and trace.kept(0, 0, 0).tolist() == [0]
    assert trace.maps[0, 0].tolist() == [[1.0]]


def test_cancelling_stops_within_a_block_and_leaves_the_model_usable() -> None:
    seen: list[float] = []
    with pytest.raises(Cancelled):
        replay(tiny("llama"), IDS, Setup(), block=4, progress=seen.append, is_cancelled=lambda: len(seen) == 6)
    assert seen == pytest.approx([0, 0, 0.1 / 3, 0.2 / 3, 0.1, 0.1])  # a block begins, then its three layers
    assert len(replay(tiny("llama"), IDS, Setup()).nll) == 39


def test_two_runs_at_once_do_not_mix() -> None:
    window = parse_setup({"policy": "window:budget=3"})
    first, second = (Pass(tiny("llama"), setup, prompt_tokens=1) for setup in (Setup(), window))
    mixed = [(first.feed(IDS[i : i + 4]), second.feed(IDS[i : i + 4])) for i in range(0, 40, 4)]
    alone = Pass(tiny("llama"), window, prompt_tokens=1)
    expected = torch.cat([alone.feed(IDS[i : i + 4]) for i in range(0, 40, 4)])
    assert torch.equal(torch.cat([b for _, b in mixed]), expected)


def test_answers_that_are_no_numbers_are_not_left_out_of_a_mean() -> None:
    """Weights that hold NaN were blamed on the tokens that are scored."""
    model = deepcopy(tiny("llama"))
    model.lm_head.weight[3, 5] = torch.nan
    with pytest.raises(ValueError, match=r"no number \(from token 0 on\): its weights hold NaN"):
        replay(model, some_ids(9).tolist(), Setup())


def test_the_losses_so_far_are_told_after_every_block() -> None:
    told: list[np.ndarray] = []
    trace = replay(tiny("llama"), some_ids(10).tolist(), Setup(), block=4, on_losses=told.append)
    assert [len(losses) for losses in told] == [4, 8, 9]
    assert all(losses.dtype == np.float64 for losses in told)
    for losses in told:
        np.testing.assert_array_equal(losses, trace.nll[: len(losses)])

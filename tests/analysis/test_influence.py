"""Gradients through a run on tiny models in float64, against finite differences and against the replay itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kvviz.analysis.influence import hidden_states, influence
from kvviz.analysis.layer_calls import layers_of
from kvviz.analysis.masks import TraceMasks
from kvviz.choices.patterns import parse_pattern
from kvviz.choices.setup import parse_setup
from kvviz.measures.influence import relay
from kvviz.measures.reach import bound, cones, reach
from kvviz.run.progress import Cancelled
from kvviz.run.replay import replay
from kvviz.run.trace import Trace
from tests.naive import mask_from_kept
from tests.tiny import NAMES, some_ids, stock, tiny

TOKENS = 20


def traced(name: str, ids: torch.Tensor, **words: str) -> Trace:
    return replay(tiny(name), ids.tolist(), parse_setup(words))


def losses(name: str, hidden: torch.Tensor, ids: torch.Tensor) -> np.ndarray:
    """Nats of every next token from the last hidden states, by the model's own norm and head."""
    model = tiny(name)
    base = model.base_model
    norm = next(getattr(base, n) for n in ("norm", "ln_f", "final_layer_norm") if hasattr(base, n))
    logits = model.get_output_embeddings()(norm(hidden))
    return torch.nn.functional.cross_entropy(logits[:-1], ids[1:], reduction="none").numpy()


SETUPS = {
    "full": {},
    "window": {"policy": "window:budget=5"},
    "streaming": {"policy": "streaming:budget=6,sinks=2"},
    "slot": {"policy": "streaming:budget=6,sinks=2", "positions": "slot"},
    "h2o": {"policy": "h2o:budget=6,recent=3"},
    "tova": {"policy": "tova:budget=6"},
    "snapkv": {"policy": "snapkv:budget=6,observe=3"},
    "random": {"policy": "random:budget=6"},
    "dilated": {"pattern": "dilated:window=3,dilation=1/3"},
    "global": {"pattern": "global:window=3,tokens=4"},
    "layered": {"pattern": "layered:windows=3/0/2"},
    "off_by_one": {"softmax": "off_by_one", "policy": "window:budget=5"},
}


CASES = [("llama", setup) for setup in SETUPS]
CASES += [(name, setup) for name in NAMES if name != "llama" for setup in ("window", "slot", "h2o", "layered")]
CASES.remove(("gpt2", "slot"))  # refused: its positions are learned


@pytest.mark.parametrize(("name", "setup"), CASES)
def test_the_hidden_states_are_those_of_the_replay(name: str, setup: str) -> None:
    ids = some_ids(TOKENS)
    trace = traced(name, ids, **SETUPS[setup])
    last = hidden_states(tiny(name), trace)[-1]
    assert np.abs(losses(name, last, ids) - trace.nll).max() < 1e-9


def naive(name: str, kept: list[list[int]], ids: torch.Tensor, query: int, depth: int) -> np.ndarray:
    """‖∂ ½‖h‖² / ∂x_j‖ by autograd through the stock model, which gives its hidden states itself."""
    model = stock(name)
    given = model.get_input_embeddings()(ids).detach()[None].requires_grad_()
    mask = mask_from_kept(kept, given.dtype)
    output = model(inputs_embeds=given, attention_mask=mask, use_cache=False, output_hidden_states=True)
    assert depth < len(output.hidden_states) - 1, "the last one has gone through the final norm"
    (0.5 * output.hidden_states[depth][0, query].square().sum()).backward()
    return given.grad[0].norm(dim=-1)[: query + 1].numpy()


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt_neox"])
@pytest.mark.parametrize("query", [7, TOKENS - 1])
def test_shares_equal_autograd_through_the_stock_model(name: str, query: int) -> None:
    ids = some_ids(TOKENS)
    trace = traced(name, ids, policy="window:budget=4")
    found = influence(tiny(name), trace, query)
    for depth in (1, 2):
        norms = naive(name, [trace.kept(0, 0, step).tolist() for step in range(TOKENS)], ids, query, depth)
        # the stock softmax computes in float32
        assert np.abs(found.gradient[depth - 1] - norms / norms.sum()).max() < 1e-7


@pytest.mark.parametrize("setup", ["h2o", "slot", "dilated", "off_by_one"])
def test_gradients_equal_finite_differences(setup: str) -> None:
    """Nudge one number of one input at a time, rerun the masked model, and watch ½‖h‖²."""
    ids, query, model = some_ids(9), 8, tiny("llama")
    trace = traced("llama", ids, **SETUPS[setup])
    table = model.get_input_embeddings()
    kept = table.weight.detach().clone()
    distinct = torch.arange(len(ids))  # every position its own token, so that a nudge meets one position
    trace = Trace(**{**vars(trace), "token_ids": distinct.numpy()})

    def energy() -> float:
        return float(0.5 * hidden_states(model, trace)[-1][query].square().sum())

    try:
        table.weight.data[: len(ids)] = kept[ids]
        norms = []
        for position in range(len(ids)):
            slopes = []
            for channel in range(kept.shape[1]):
                before, nudge = float(table.weight[position, channel]), 1e-5
                table.weight.data[position, channel] = before + nudge
                up = energy()
                table.weight.data[position, channel] = before - nudge
                slopes.append((up - energy()) / (2 * nudge))
                table.weight.data[position, channel] = before
            norms.append(np.linalg.norm(slopes))
        found = influence(model, trace, query, [3]).gradient[0]
    finally:
        table.weight.data.copy_(kept)
    # Llama's norm computes in float32, so a nudge of 1e-5 is known to four digits
    assert np.abs(found - np.array(norms) / np.sum(norms)).max() < 1e-4


PATTERNS = ("sliding:window=3", "dilated:window=3,dilation=2", "global:window=2,tokens=5", "layered:windows=2/4/3")


@pytest.mark.parametrize("spec", PATTERNS)
def test_it_is_exactly_zero_outside_the_bound_and_above_inside(spec: str) -> None:
    found = influence(tiny("llama"), traced("llama", some_ids(TOKENS), pattern=spec), TOKENS - 1)
    for depth, sees in enumerate(reach(parse_pattern(spec), 3, TOKENS), 1):
        row = found.gradient[depth - 1]
        assert (row[~sees] == 0.0).all() and (row[sees] > 0).all()
        limit = bound(parse_pattern(spec), depth).positions
        assert limit is None or np.count_nonzero(row) <= limit
        assert (found.rollout[depth - 1][~sees] == 0.0).all()


@pytest.mark.parametrize("setup", ["window", "streaming", "h2o", "snapkv", "random", "dilated"])
@pytest.mark.parametrize("name", ["llama", "gemma3", "mistral"])
def test_levels_lie_in_the_cone_of_what_was_kept(name: str, setup: str) -> None:
    trace = traced(name, some_ids(TOKENS), **SETUPS[setup])
    found, masks = influence(tiny(name), trace, TOKENS - 1), TraceMasks(tiny(name), trace, TOKENS - 1)
    cone = cones(masks.union, found.depths, TOKENS - 1)
    for i, depth in enumerate(found.depths):
        levels = found.levels[i, : depth + 1]
        assert ((levels > 0) == cone[i, : depth + 1]).all()
        assert np.abs(levels.sum(-1) - 1).max() < 1e-12
        assert abs(found.rollout[i].sum() - 1) < 1e-12
        assert (np.isfinite(found.strength[i]) == cone[i, 0]).all()


def test_a_hybrid_reaches_everything_through_its_full_layer() -> None:
    """Known fault 147: the window of some layers is applied to all of them."""
    trace = traced("gemma3", some_ids(TOKENS))  # sliding window 9, full, sliding
    found = influence(tiny("gemma3"), trace, TOKENS - 1)
    assert [np.count_nonzero(row) for row in found.gradient] == [9, 20, 20]


def test_every_hop_of_the_strongest_path_was_seen() -> None:
    trace = traced("llama", some_ids(TOKENS), policy="window:budget=4")
    found, query = influence(tiny("llama"), trace, TOKENS - 1), TOKENS - 1
    farthest = query - 9
    path = relay(found.came_from[2], query, farthest)
    assert path == [farthest, farthest + 3, farthest + 6, query]
    assert np.exp(found.strength[2][farthest]) <= found.rollout[2][farthest] + 1e-15


def test_recomputing_reads_the_window_alone() -> None:
    ids = some_ids(TOKENS)
    trace = traced("llama", ids, policy="recompute:budget=5")
    found = influence(tiny("llama"), trace, TOKENS - 1)
    fresh = influence(tiny("llama"), traced("llama", ids[-5:]), 4)
    assert found.gradient.shape == (3, TOKENS) and (found.gradient[:, :-5] == 0).all()
    assert np.abs(found.gradient[:, -5:] - fresh.gradient).max() < 1e-12
    assert relay(found.came_from[2], TOKENS - 1, TOKENS - 5)[0] == TOKENS - 5


@pytest.mark.parametrize("name", NAMES)
def test_only_attention_moves_sideways(name: str) -> None:
    parts = influence(tiny(name), traced(name, some_ids(TOKENS)), TOKENS - 1, [2]).sublayers
    assert set(parts) == {"attention", "FFN", "residual", "layer"}
    for still in ("FFN", "residual"):
        assert parts[still][-1] == 1 and (parts[still][:-1] == 0).all()
    assert parts["attention"][:-1].sum() > 0.1 and parts["attention"].sum() == pytest.approx(1)


def test_one_token_and_equal_tokens() -> None:
    one = influence(tiny("llama"), traced("llama", some_ids(1)), 0)
    assert one.gradient.tolist() == [[1.0]] * 3 and relay(one.came_from[2], 0, 0) == [0, 0, 0, 0]
    same = influence(tiny("llama"), traced("llama", torch.full((9,), 5)), 8)
    assert np.isfinite(same.gradient).all() and np.abs(same.gradient.sum(-1) - 1).max() < 1e-12


def test_chosen_depths_equal_those_of_all() -> None:
    trace = traced("llama", some_ids(TOKENS))
    every, some = influence(tiny("llama"), trace, 11), influence(tiny("llama"), trace, 11, [3, 1])
    assert some.depths == (1, 3) and every.depths == (1, 2, 3)
    assert (some.gradient == every.gradient[[0, 2]]).all() and some.levels.shape == (2, 4, 12)


def test_progress_cancel_and_refusals() -> None:
    model, trace, told = tiny("llama"), traced("llama", some_ids(8)), []
    influence(model, trace, 7, progress=told.append)
    assert told == sorted(told) and len(told) == 6 and told[-1] == 1.0
    with pytest.raises(Cancelled):
        influence(model, trace, 7, is_cancelled=lambda: True)
    with pytest.raises(ValueError, match="no query 8; choose a position from 0 to 7"):
        influence(model, trace, 8)
    with pytest.raises(ValueError, match="from 1 to 3"):
        influence(model, trace, 7, [4])


def test_nothing_is_left_on_the_model() -> None:
    model = tiny("llama")

    def hooks() -> list[list[object]]:
        """Those on the model and on its layers; the library leaves one where somebody asked it for attentions."""
        return [[*m._forward_pre_hooks.values(), *m._forward_hooks.values()] for m in [model, *layers_of(model)]]

    before = hooks()
    influence(model, traced("llama", some_ids(8)), 7)
    assert hooks() == before
    assert not any(parameter.requires_grad for parameter in model.parameters())

"""Speculation writes what plain greedy decoding writes and leaves the same cache, on tiny models and on SmolLM2."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from kvviz.analysis.drafts.cost import tree_cost
from kvviz.analysis.drafts.drafters import by_first_layers, shortened
from kvviz.analysis.drafts.speculation import Drafter, Speculation, speculate
from kvviz.analysis.drafts.tree import ROOT, Tree, tree_of
from kvviz.analysis.layer_calls import layers_of
from kvviz.choices.texts import DEFAULT_TEXT, PRESETS
from kvviz.models import Loaded, tokens
from kvviz.run.progress import Cancelled
from kvviz.run.reading import Reading
from tests.analysis.exactness.stock_runs import double, stock_read
from tests.tiny import NAMES, some_ids, tiny

LOOKUP, LAYERS = Drafter("lookup", 3, 3), Drafter("layers", 2, 3, layers=2)


def repeating(count: int = 24) -> list[int]:
    """A text in which lookup finds something."""
    return (some_ids(6).tolist() * 9)[:count]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("drafter", [LOOKUP, LAYERS], ids=["lookup", "layers"])
def test_text_and_cache_are_those_of_plain_decoding(name: str, drafter: Drafter) -> None:
    found = speculate(tiny(name), repeating(), drafter, 20, layer=1)
    assert found.is_equal and len(found.token_ids) == 20 and found.margin is None
    assert found.largest_gap <= 1e-9 and found.cache_gap <= 1e-9 and found.is_exact
    assert sum(len(step.written) for step in found.steps) == 20
    for step in found.steps:
        assert len(step.kept) == len(step.written) and len(step.accepted) <= len(step.written)


@pytest.mark.parametrize("name", ("llama", "qwen3", "gpt2", "gpt_neox"))
def test_greedy_is_the_stock_models_own(name: str) -> None:
    model, text, written = double(name), repeating(), []
    cache = DynamicCache()
    given = torch.tensor([text])
    for _ in range(12):
        with torch.inference_mode():
            given = model(input_ids=given, cache=cache, use_cache=True).logits[:, -1].argmax(-1, keepdim=True)
        written.append(int(given))
    found = speculate(tiny(name), text, LOOKUP, 12)
    assert list(found.token_ids) == written == list(found.greedy_token_ids)


@pytest.mark.parametrize("name", ("llama", "gpt2", "gpt_neox"))
def test_a_tree_in_one_forward_is_each_branch_by_itself(name: str) -> None:
    """The second computation reads every branch alone, after the prompt, with the stock model."""
    ids, tree = some_ids(9), tree_of([[1, 2, 3], [1, 5], [7, 2]])
    reading = Reading(tiny(name))
    reading.read(ids[:-1])
    places = torch.tensor([0, *tree.depths]) + 8
    logits = reading.read([int(ids[-1]), *tree.tokens], positions=places, visible=tree.mask(8), order=places)
    for node in range(len(tree)):
        branch, at = [], node
        while at != ROOT:
            branch.insert(0, tree.tokens[at])
            at = tree.parents[at]
        alone, _ = stock_read(double(name), torch.tensor([*ids.tolist(), *branch]))
        torch.testing.assert_close(logits[node + 1], alone[-1], rtol=0, atol=1e-9)
    _, cache = stock_read(double(name), ids[:-1])
    block = torch.tensor([int(ids[-1]), *tree.tokens])
    masked, _ = stock_read(double(name), block, held_before=cache, positions=places, visible=tree.mask(8))
    torch.testing.assert_close(logits, masked, rtol=0, atol=1e-9)
    _, cache = stock_read(double(name), ids[:-1])
    causal, _ = stock_read(double(name), block, held_before=cache, positions=places)
    assert float((logits - causal).abs().max()) > 1e-3  # the mask is what keeps the branches apart


def test_a_sibling_gets_exactly_nothing() -> None:
    found = speculate(tiny("llama"), repeating(), Drafter("layers", 4, 3, layers=2), 8, layer=2)
    for step in found.steps:
        hidden = ~step.tree.mask(0).numpy()
        assert step.weights.shape == (4, len(step.tree) + 1, len(step.tree) + 1)
        assert (step.weights[:, hidden] == 0).all() and (step.weights[:, ~hidden] > 0).all()
        np.testing.assert_allclose(step.weights.sum(-1) + step.on_cache, 1, atol=1e-6)


def test_the_first_layers_draft_what_they_alone_would_say() -> None:
    """Without any cache: two layers, then the norm and the head, on every branch from its beginning."""
    model, ids = tiny("llama"), some_ids(10)
    reading = Reading(model)
    reading.read(ids[:-1])
    tree = by_first_layers(model, reading, int(ids[-1]), 2, 2, 3)
    assert reading.held == 9 and len(layers_of(model)) == 3
    stock = double("llama")
    with shortened(stock, 2), torch.inference_mode():

        def after(text: list[int]) -> torch.Tensor:
            return stock(input_ids=torch.tensor([text]), use_cache=False).logits[0, -1]

        paths = []
        for first in after(ids.tolist()).topk(2).indices.tolist():
            path = [first]
            while len(path) < 3:
                path.append(int(after([*ids.tolist(), *path]).argmax()))
            paths.append(path)
    level_by_level = Tree(
        (*(path[0] for path in paths), *(path[1] for path in paths), *(path[2] for path in paths)),
        (ROOT, ROOT, 0, 1, 2, 3),
    )
    assert tree == level_by_level


def test_it_stops_where_plain_decoding_stops() -> None:
    plain = speculate(tiny("llama"), repeating(), LOOKUP, 20)
    end = plain.token_ids[7]
    first = plain.token_ids.index(end)
    found = speculate(tiny("llama"), repeating(), LOOKUP, 20, stop_at={end})
    assert found.token_ids == found.greedy_token_ids == plain.token_ids[: first + 1] and found.cache_gap <= 1e-9


@pytest.mark.parametrize("count", [1, 2])
def test_the_shortest_prompts(count: int) -> None:
    for drafter in (LOOKUP, LAYERS):
        found = speculate(tiny("llama"), repeating(count), drafter, 3)
        assert found.is_equal and len(found.token_ids) == 3


@pytest.mark.parametrize(
    ("drafter", "new", "words"),
    [
        (Drafter("lokup"), 4, "no drafter 'lokup'; did you mean 'lookup'"),
        (Drafter("lookup", 33, 2), 4, "may have 66 tokens, more than the 64"),
        (Drafter("layers", 2, 2, layers=3), 4, "The first 3 layers cannot draft: choose from 1 to 2"),
        (LOOKUP, 0, "max_new_tokens=0 must be at least 1"),
        (LOOKUP, 400, "positions and this llama model was trained on 256"),
    ],
)
def test_nonsense_is_refused(drafter: Drafter, new: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        speculate(tiny("llama"), repeating(), drafter, new)


def test_it_can_be_cancelled() -> None:
    with pytest.raises(Cancelled):
        speculate(tiny("llama"), repeating(), LOOKUP, 20, is_cancelled=lambda: True)


@pytest.fixture(scope="module")
def on_smollm2(smollm2: Loaded) -> Speculation:
    ids = tokens.encode(smollm2.tokenizer, PRESETS[DEFAULT_TEXT].text(), 128)
    return speculate(smollm2.model, ids, Drafter(), 32)


@pytest.mark.real
def test_smollm2_writes_the_same_with_drafts(on_smollm2: Speculation) -> None:
    """Claim 45. Measured: 20 of 32 tokens drafted by lookup, in 14 steps; gap 4.0e-5 nats, cache 1.3e-6."""
    assert on_smollm2.is_equal and len(on_smollm2.steps) < 32 == len(on_smollm2.token_ids)
    assert on_smollm2.largest_gap <= 2e-4 and on_smollm2.cache_gap <= 1e-5 and on_smollm2.is_exact
    assert sum(on_smollm2.accepted) > 8


def test_the_cost_of_a_tree_is_timed_and_leaves_nothing_behind() -> None:
    cost = tree_cost(tiny("llama"), some_ids(12), tree_of([[1, 2, 3], [4, 5]]))
    assert cost.rows == 6 and cost.tree_seconds > 0 and cost.step_seconds > 0
    assert cost.ratio == pytest.approx(cost.tree_seconds / cost.step_seconds / 6)
    assert cost.steps_paid == pytest.approx(6 * cost.ratio)

"""One query's weights in every layer and head are its row of every map."""

from __future__ import annotations

import numpy as np
import pytest

from kvviz.analysis import query_attention
from kvviz.analysis.query_attention import query_weights
from kvviz.choices.setup import parse_setup
from kvviz.run.progress import Cancelled
from kvviz.run.replay import replay
from tests.tiny import some_ids, tiny

TOKENS, QUERY = 24, 17


POLICIES = ("full", "window:budget=5", "h2o:budget=8", "snapkv:budget=8,observe=4", "recompute:budget=6")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_row_is_that_of_the_maps(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_attention, "BLOCK", 5)
    model, ids, setup = tiny("llama"), some_ids(TOKENS).tolist(), parse_setup({"policy": policy})
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    every = [(layer, head) for layer in range(layers) for head in range(heads)]
    trace = replay(model, ids, setup, prompt_tokens=12, maps=every)
    found = query_weights(model, ids, setup, QUERY, prompt_tokens=12)
    assert found.shape == (layers, heads, QUERY + 1)
    for layer, head in every:
        np.testing.assert_allclose(found[layer, head], trace.maps[layer, head][QUERY, : QUERY + 1], atol=1e-6)


def test_a_query_outside_the_text_is_refused_and_a_stop_is_heard() -> None:
    model, ids, setup = tiny("llama"), some_ids(TOKENS).tolist(), parse_setup({"policy": "full"})
    with pytest.raises(ValueError, match="There is no query 24: the text has the positions 0–23"):
        query_weights(model, ids, setup, TOKENS, prompt_tokens=12)
    with pytest.raises(Cancelled):
        query_weights(model, ids, setup, QUERY, prompt_tokens=12, is_cancelled=lambda: True)

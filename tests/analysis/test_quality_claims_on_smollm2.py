"""What the Quality page shows of the sources' claims, asked of SmolLM2. Measured figures stand beside the bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kvviz.analysis.tasks import TASKS
from kvviz.analysis.tasks.scoring import Cell, grid
from kvviz.choices.setup import parse_setup
from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.models import Loaded, tokens
from kvviz.run.replay import replay
from kvviz.run.trace import Trace

pytestmark = pytest.mark.real
TOKENS, BUDGET = 256, 64
PICKING = "snapkv:budget=64,observe=8,kernel=13,pooling=max"
SINKS = f"streaming:budget={BUDGET},sinks="


@pytest.fixture(scope="module")
def filler(smollm2: Loaded) -> list[int]:
    return tokens.encode(smollm2.tokenizer, PRESETS[LONG_TEXT].text(), 20_000)


@pytest.fixture(scope="module")
def traces(smollm2: Loaded, filler: list[int]) -> dict[str, Trace]:
    policies = ["full", f"window:budget={BUDGET}", f"{SINKS}1", f"{SINKS}4", f"h2o:budget={BUDGET}"]
    ids = filler[:TOKENS]
    return {words: replay(smollm2.model, ids, parse_setup({"policy": words})) for words in policies}


def late(trace: Trace) -> float:
    return float(trace.nll[TOKENS // 2 - 1 :].mean())


@pytest.fixture(scope="module")
def middle(smollm2: Loaded, filler: list[int]) -> Callable[[str], Cell]:
    """A number in the middle of 256 tokens, asked for at the end."""

    def asked(policy: str) -> Cell:
        setup = parse_setup({"policy": policy})

        def encode(text: str) -> list[int]:
            return tokens.encode(smollm2.tokenizer, text, 10**9)

        options = {"tokens": TOKENS, "depths": [50], "seeds": 1}
        return grid(smollm2.model, encode, filler, TASKS["passkey"], setup, **options).cells[0]  # type: ignore[arg-type]

    return asked


def test_a_window_s_cache_stops_growing(traces: dict[str, Trace]) -> None:
    """Claim 05. 64 entries a layer and KV head from token 63 on, so the bytes are a quarter of the full cache's."""
    window, full = traces[f"window:budget={BUDGET}"], traces["full"]
    assert window.entries()[..., BUDGET - 1 :].min() == window.entries().max() == BUDGET
    assert window.cache_bytes * TOKENS == full.cache_bytes * BUDGET


def test_a_model_trained_on_everything_does_not_bear_a_window(traces: dict[str, Trace]) -> None:
    """Claims 10 and 12. 3.78 nats a token with the window, 2.82 with everything; equal while all tokens are held."""
    window, full = traces[f"window:budget={BUDGET}"], traces["full"]
    assert late(window) - late(full) > 0.7
    np.testing.assert_allclose(window.nll[: BUDGET - 1], full.nll[: BUDGET - 1], atol=1e-3)


def test_one_sink_is_nearly_as_good_as_four(traces: dict[str, Trace]) -> None:
    """Claim 34. Of 512 tokens with 64 entries: 0, 1, 2, 4, 8 sinks 4.86, 3.21, 3.21, 3.20, 3.19 nats, full 2.87."""
    lost = late(traces[f"window:budget={BUDGET}"]) - late(traces["full"])
    assert late(traces[f"{SINKS}1"]) - late(traces["full"]) < 0.4 * lost
    assert abs(late(traces[f"{SINKS}1"]) - late(traces[f"{SINKS}4"])) < 0.1


def test_what_was_pruned_is_lost_and_choosing_costs_time(traces: dict[str, Trace]) -> None:
    """Claim 23. h2o loses 0.16 nats and reads all attention, row by row; the window reads none of it."""
    h2o, window = traces[f"h2o:budget={BUDGET}"], traces[f"window:budget={BUDGET}"]
    assert 0.05 < late(h2o) - late(traces["full"]) < late(window) - late(traces["full"])
    assert h2o.setup.policy.needs and not window.setup.policy.needs


def test_an_evicted_number_is_not_found_and_one_that_was_looked_for_is(middle: Callable[[str], Cell]) -> None:
    """Claims 16, 35 and 51. With 64 entries each the sinks and the latest tokens hold the number in none of the layers
    and heads and do not find it; snapkv, told by the question what matters, keeps it in 12 % and does."""
    assert middle("full").found
    static, picking = middle("streaming:budget=64,sinks=4"), middle(PICKING)
    assert not static.found and static.held == 0
    assert picking.found and picking.held is not None and picking.held > 0
    assert picking.answer_loss < static.answer_loss - 1

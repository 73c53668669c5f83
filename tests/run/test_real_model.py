"""Equality on SmolLM2 in float32, as the README defines it.

Summing in another order moves even the stock model's own answers: one pass against blocks of eight differs by 6e-5 in
log-probabilities with all keys in sight, by 2–7e-4 under a window that hides the sinks (the model is far from home
there and amplifies rounding). So equal means a gap of at most 2e-4, or twice the stock model's own gap under the same
mask in this run where that is larger.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache

from kvviz.choices.setup import Setup, parse_setup
from kvviz.choices.texts import PRESETS
from kvviz.models import Loaded
from kvviz.models.tokens import encode
from kvviz.run.engine import Pass
from tests.naive import mask_from_kept, streaming_kept, window_kept

pytestmark = pytest.mark.real
TOKENS = 136


@pytest.fixture(scope="module")
def ids(smollm2: Loaded) -> Tensor:
    return torch.tensor(encode(smollm2.tokenizer, PRESETS["language-reference"].text()[:20_000], TOKENS))


@pytest.fixture(scope="module")
def stock(smollm2: Loaded, ids: Tensor) -> Callable[..., Tensor]:
    """Log-probabilities (T, vocabulary) of the stock model under the mask that kept sets amount to, by block."""

    @cache
    def log_probabilities(policy: str, block: int = TOKENS) -> Tensor:
        smollm2.model.set_attn_implementation("sdpa")
        mask = mask_from_kept([KEPT[policy](step) for step in range(TOKENS)], torch.float32)
        past, rows = DynamicCache(config=smollm2.model.config), []
        for start in range(0, TOKENS, block):
            part = slice(start, start + block)
            with torch.inference_mode():
                output = smollm2.model(
                    input_ids=ids[None, part],
                    position_ids=torch.arange(TOKENS)[None, part],
                    attention_mask=mask[:, :, part, : start + block],
                    cache=past,
                    use_cache=True,
                )
            rows.append(output.logits[0])
        return torch.cat(rows).log_softmax(-1)

    return log_probabilities


KEPT: dict[str, Callable[[int], list[int]]] = {
    "full": lambda step: list(range(step + 1)),
    "window:budget=64": lambda step: window_kept(step, 64),
    "streaming:budget=64,sinks=4": lambda step: streaming_kept(step, 64, 4),
}


def is_equal(mine: Tensor, other: Tensor, stock: Callable[..., Tensor], policy: str) -> bool:
    """Within 2e-4, or within twice the stock model's own gap between one pass and smaller blocks under the mask.

    How wide that gap is depends on the machine's kernels: 2e-4 to 7e-4 were seen under a window of 64.
    """
    gap = float((mine - other).abs().max())
    if gap <= 2e-4:
        return True
    # random keeps another set in every head, which no one mask can say, and hides the sinks as the window does
    policy = policy if policy in ("full", "streaming:budget=64,sinks=4") else "window:budget=64"
    whole = stock(policy)
    # the cheapest first: one that is as wide is enough
    return any(gap <= 2 * float((stock(policy, block) - whole).abs().max()) for block in (8, 3, 1))


def run(loaded: Loaded, ids: Tensor, setup: Setup, block: int) -> tuple[Tensor, Tensor]:
    done = Pass(loaded.model, setup, prompt_tokens=TOKENS // 2)
    rows = [done.feed(ids[start : start + block]) for start in range(0, len(ids), block)]
    return torch.cat(rows).log_softmax(-1), done.evicted_at()


@pytest.mark.parametrize("policy", list(KEPT))
def test_evicting_equals_the_stock_model_under_the_mask(
    smollm2: Loaded, ids: Tensor, stock: Callable[..., Tensor], policy: str
) -> None:
    for block in (8, 256):
        mine, _ = run(smollm2, ids, parse_setup({"policy": policy}), block)
        assert is_equal(mine, stock(policy), stock, policy)


# stepping costs a forward a token: one setup is stepped, the others take small blocks; tiny models take all of them
WORDS = [
    ({"policy": "full"}, 8),
    ({"policy": "window:budget=64"}, 8),
    ({"policy": "random:budget=64"}, 8),
    ({"policy": "streaming:budget=64,sinks=4", "positions": "slot"}, 1),
]


@pytest.mark.parametrize(("words", "block"), WORDS, ids=lambda w: " ".join(w.values()) if isinstance(w, dict) else w)
def test_block_sizes_agree(
    smollm2: Loaded, ids: Tensor, stock: Callable[..., Tensor], words: dict[str, str], block: int
) -> None:
    setup = parse_setup(words)
    few = ids[:88] if block == 1 else ids  # a good deal longer than the budget, where every token costs a forward
    expected, lifetimes = run(smollm2, few, setup, 256)
    mine, other = run(smollm2, few, setup, block)
    assert torch.equal(lifetimes, other)
    assert is_equal(mine, expected, stock, words["policy"])


def test_losing_the_sinks_costs_quality_and_keeping_them_repairs_it(smollm2: Loaded, ids: Tensor) -> None:
    """Random toy models have no sinks; only real weights show it.

    Known fault 7: a window that loses the first tokens is tested on toy models, which have no sinks to lose.
    """

    @cache
    def loss(policy: str) -> float:
        mine, _ = run(smollm2, ids, parse_setup({"policy": policy}), 256)
        return float(-mine[:-1].gather(1, ids[1:, None])[100:].mean())

    assert loss("window:budget=64") > loss("streaming:budget=64,sinks=4") + 0.3
    assert loss("streaming:budget=64,sinks=4") < loss("full") + 0.3

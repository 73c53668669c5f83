"""A model beside the stock model on a few tokens: the full cache in one block and stepped, and a window."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.cache.slots import native_windows
from kvviz.choices.setup import Setup
from kvviz.models.stock import stock_logits
from kvviz.policies.window import Window
from kvviz.run.engine import Pass

PROMPT, WINDOW = 6, 4
# Largest gaps in log-probability, in nats, between two orders of the same sums (measured on SmolLM2 in float32: 5e-5
# on a sentence, 1.5e-3 on tokens from all over the vocabulary). Softmax and cosines are float32 in any format.
ALLOWED_GAP = {torch.float64: 1e-4, torch.float32: 2e-3}

Compared: TypeAlias = "tuple[str, float, float]"  # the gap's name, the gap, and the largest that is allowed


def compared(model: PreTrainedModel, ids: Tensor) -> list[Compared]:
    """The three comparisons with the stock model, each after the one before it."""
    expected = stock_logits(model, ids)
    if not expected.isfinite().all():
        raise ValueError(
            f"This {model.config.model_type} model answers with something that is no number: its weights hold NaN, or "
            "overflow in this number format; choose another dtype or sound weights."
        )
    allowed = ALLOWED_GAP[model.dtype]
    whole = Pass(model, Setup(), prompt_tokens=PROMPT).feed(ids)
    found = [("full_gap", gap_between(whole, expected), allowed)]
    run = Pass(model, Setup(), prompt_tokens=PROMPT)
    stepped = torch.cat([run.feed(part) for part in (ids[:PROMPT], *ids[PROMPT:].split(1))])
    found.append(("stepped_gap", gap_between(stepped, expected), allowed))
    if any(gap > most for _, gap, most in found):
        return found
    size = min([WINDOW, *(window for window in native_windows(model.config) if window is not None)])
    masked = stock_logits(model, ids, window=size)
    kept = Pass(model, Setup(Window(budget=size)), prompt_tokens=PROMPT).feed(ids)
    return [*found, ("window_gap", gap_between(kept, masked), allowed)]


def gap_between(mine: Tensor, theirs: Tensor) -> float:
    """The largest difference in log-probability; infinite where one is not a number."""
    wide = torch.promote_types(mine.dtype, torch.float32)
    gap = (mine.to(wide).log_softmax(-1) - theirs.to(wide).log_softmax(-1)).abs()
    return float(gap.nan_to_num(torch.inf).max())


def disagreement(model_type: str, name: str, gap: float, allowed: float) -> str:
    """One sentence about a gap that is too large."""
    case = {
        "full_gap": "with the full cache",
        "stepped_gap": "with the full cache, one token at a time,",
        "window_gap": "with a window",
    }[name]
    return (
        f"{model_type} models are refused: {case} kvviz' log-probabilities differ from the stock model's by up to "
        f"{gap:.3g} nats where {allowed:.2g} is allowed, so this model sees, places or carries tokens in a way that "
        "kvviz does not know; choose a causal model of another architecture, such as Llama, Qwen or Gemma."
    )

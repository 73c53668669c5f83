"""Cached answers beside uncached ones, the stock model's: gaps, agreement, and what rounding may do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from kvviz.models.stock import stock_attention, stock_logits
from kvviz.run.reading import refuse_places
from kvviz.text.counting import plural

CHUNK = 64  # rows compared at once: one has as many numbers as the model knows tokens
LEAST_ALLOWED = 2e-4  # nats; what another order of the same sums may change on SmolLM2 in float32


@dataclass(frozen=True, eq=False)
class Compared:
    """Of each row after the prefix (q,): how far its answer is from the uncached one, and the likeliest next token."""

    gaps: NDArray[np.float64]  # the largest difference in log-probability over all tokens, nats
    likeliest: NDArray[np.int64]
    uncached: NDArray[np.int64]  # the likeliest token of the uncached run
    first: int  # position of the first of these rows

    @property
    def gap(self) -> float:
        """The largest of all."""
        return float(self.gaps.max())

    @property
    def agreement(self) -> float:
        """Share of the rows whose likeliest token is the uncached run's."""
        return float((self.likeliest == self.uncached).mean())

    @property
    def broken_row(self) -> int | None:
        """The first row whose likeliest token is another one; None if there is none."""
        differs = np.flatnonzero(self.likeliest != self.uncached)
        return int(differs[0]) if len(differs) else None

    @property
    def first_token(self) -> int | None:
        """Position in the text of the first predicted token that is another one."""
        return None if self.broken_row is None else self.first + self.broken_row + 1

    @property
    def nbytes(self) -> int:
        return self.gaps.nbytes + self.likeliest.nbytes + self.uncached.nbytes


def compare(logits: Tensor, uncached: Tensor, first: int) -> Compared:
    """Two answers (q, vocabulary) to the rows from position ``first`` on."""
    gaps = [row_gaps(*pair) for pair in zip(logits.split(CHUNK), uncached.split(CHUNK), strict=True)]
    likeliest, expected = (one.argmax(-1).cpu().numpy() for one in (logits, uncached))
    return Compared(torch.cat(gaps).cpu().numpy(), likeliest, expected, first)


def row_gaps(mine: Tensor, theirs: Tensor) -> Tensor:
    """The largest difference in log-probability of each row, (R,) float64."""
    wide = torch.promote_types(mine.dtype, torch.float32)
    return (mine.to(wide).log_softmax(-1) - theirs.to(wide).log_softmax(-1)).abs().amax(-1).double()


def check_prefix(prefix: int, tokens: int) -> None:
    """ValueError unless the prefix has a token and the rest two: one that answers, and one that says what it cost."""
    if tokens < 3:
        raise ValueError(
            f"A text of {plural(tokens, 'token')} is too short: the cache is made of its prefix and reused for the "
            "rest, which needs two tokens at least; give at least 3 tokens."
        )
    if not 1 <= prefix <= tokens - 2:
        raise ValueError(
            f"The prefix cannot end after {prefix} of {tokens} tokens: the rest needs two at least; choose a number "
            f"from 1 to {tokens - 2}."
        )


def uncached_logits(model: PreTrainedModel, ids: Tensor, prefix: int) -> Tensor:
    """What the stock model answers after the prefix, (T − prefix, vocabulary), from one forward without a cache."""
    refuse_places(model, len(ids))
    check_prefix(prefix, len(ids))
    return stock_logits(model, ids)[prefix:].clone()


def stock_gap(model: PreTrainedModel, ids: Tensor, prefix: int, uncached: Tensor) -> float:
    """How far the stock model's own cached answers are from its uncached ones, in nats: the order of its sums alone."""
    places, entries = torch.arange(len(ids), device=ids.device)[None], DynamicCache(config=model.config)
    with stock_attention(model), torch.inference_mode():
        for part in (slice(0, prefix), slice(prefix, None)):
            answer = model(input_ids=ids[None, part], position_ids=places[:, part], cache=entries, use_cache=True)
    return compare(answer.logits[0], uncached, prefix).gap


def allowed_gap(model: PreTrainedModel, stock_gap: float) -> float:
    """The largest gap that counts as equal, in nats: twice what the stock model's own two ways differ by, at least."""
    return max(LEAST_ALLOWED if model.dtype == torch.float32 else 0.0, 2 * stock_gap)

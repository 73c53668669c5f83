"""LagKV: entries that vary more than the next ones stay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.knobs import knob
from kvviz.policies.base import PromptEnd, View

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Lagkv(PromptEnd):
    """When the prompt has been read, rank each entry inside its partition of ``lag`` tokens and keep the B best.

    S_{P−1} = top_B(rank_j), ranks of sinks and end above all others.
    Partitions follow the first ``sinks`` tokens. With m and M the smallest and largest number of each channel in the
    next partition, an entry's spread is the standard deviation over channels of (x − m)/(M − m); a softmax inside the
    partition, for keys and for values, the mean of both, and its rank there is the score. The sinks, the last whole
    partition and what follows it stay, the latest of them first; so does all of a prompt without two partitions, and
    then the latest are kept. No attention is read.

    Source: Liang et al., LagKV: Lag-Relative Information of the KV Cache Tells Which Tokens Are Important (2025).
    Departure: the budget is a number of entries, not a share, and is met exactly where sinks and the end exceed it.
    """

    title = "LagKV: unlike what follows"
    source = "Liang et al., LagKV: Lag-Relative Information of the KV Cache Tells Which Tokens Are Important, 2025"
    needs = ("key", "value")
    scores_alone = False  # entries are ranked among their neighbours
    lag: int = knob(32, "tokens of a partition", 2, 4096)
    sinks: int = knob(4, "first tokens always kept", 0, 64)

    def score(self, view: View) -> Tensor:
        import torch

        keys, slots = view.statistics["key"], view.positions.shape[-1]
        whole = (slots - self.sinks) // self.lag
        score = view.positions.to(keys.dtype) + 1  # of what stays in any case the latest, above every rank
        if whole >= 2:
            end = self.sinks + (whole - 1) * self.lag
            spreads = [self.spread(view.statistics[name][..., self.sinks : end + self.lag]) for name in self.needs]
            mean = (spreads[0] + spreads[1]) / 2
            ranks = mean.argsort(dim=-1, stable=True).argsort(dim=-1, stable=True) / self.lag  # below 1
            score[..., self.sinks : end] = ranks.flatten(-2).to(score.dtype)
        # the first tokens before all others, and the newest before them
        score = torch.where(view.positions < self.sinks, score + view.newest + 1, score)
        return score.masked_fill(view.positions == view.newest, math.inf)

    def spread(self, numbers: Tensor) -> Tensor:
        """Softmax inside each partition but the last of how much an entry varies, (…, D, n·lag) → (…, n − 1, lag)."""
        parts = numbers.unflatten(-1, (-1, self.lag))  # (…, D, n, lag)
        low, high = (edge(parts[..., 1:, :]) for edge in (lowest, highest))
        # a channel that never changes in the next partition would divide by nothing
        scaled = (parts[..., :-1, :] - low) / (high - low).clamp(min=1e-12)
        return scaled.std(-3).softmax(-1)

    def notes(self, tokens: int, prompt_tokens: int) -> list[str]:
        """Where nothing is left to rank: what always stays fills the budget."""
        always = self.sinks + self.lag + (prompt_tokens - self.sinks) % self.lag
        if prompt_tokens <= self.budget or always < self.budget:
            return super().notes(tokens, prompt_tokens)
        return [
            f"The sinks, the last whole partition of {self.lag} and what follows it fill the budget of {self.budget} "
            "here, "
            "so no entry is ranked: choose a smaller lag or a larger budget."
        ]

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        if self.is_before_choice(newest, prompt_tokens):
            return "other"
        if position < self.sinks:
            return "sink"
        whole = (prompt_tokens - self.sinks) // self.lag
        return "recent" if whole < 2 or position >= self.sinks + (whole - 1) * self.lag else "other"


def lowest(parts: Tensor) -> Tensor:
    return parts.amin(-1, keepdim=True)


def highest(parts: Tensor) -> Tensor:
    return parts.amax(-1, keepdim=True)

"""The pass that has no cache: every token's prediction is a forward of its own over the latest B tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.choices.setup import Setup
from kvviz.choices.storage import Native, Widths
from kvviz.policies.full import Full
from kvviz.run.block import Recorder
from kvviz.run.engine import Pass
from kvviz.text.counting import plural

AFFORDABLE_TOKENS = 2**15  # tokens read afresh before positions are sampled: about half a minute on two cores


class RecomputePass:
    """As ``engine.Pass``: feed it blocks of tokens, it returns logits; rows that were not computed are NaN.

    The first B positions all begin at token 0, so one forward serves them. ``tokens`` is the length of the text where
    it is known; then only as many later positions are computed as AFFORDABLE_TOKENS allows, evenly spread.
    """

    cache_bytes = 0

    def __init__(
        self, model: PreTrainedModel, setup: Setup, *, tokens: int | None = None, recorder: Recorder | None = None
    ) -> None:
        self.model, self.setup, self.recorder = model, setup, recorder
        self.budget: int = setup.policy.budget  # type: ignore[attr-defined]
        self.inner = replace(setup, policy=Full(), storage=Native())  # nothing is stored
        self.ids = torch.empty(0, dtype=torch.long, device=model.device)
        self.on_layer: Callable[[int], None] | None = None  # as Pass has it; never told, for each forward is short
        self.chosen = None if tokens is None else sample(tokens, self.budget)
        probe = Pass(model, self.inner, prompt_tokens=1)  # refuses setups that have no meaning for the model
        self.layers, self.kv_heads = probe.layers, probe.kv_heads
        self.stored = [(self.kv_heads, Widths(0, 0, 0))] * self.layers

    @property
    def fed(self) -> int:
        return len(self.ids)

    def feed(self, token_ids: Sequence[int] | Tensor, *, last_only: bool = False) -> Tensor:
        """Logits (R, vocabulary) of a block of R tokens, or (1, vocabulary) of its last one."""
        new = torch.as_tensor(token_ids, device=self.model.device).view(-1)
        start = self.fed
        self.ids = torch.cat([self.ids, new])
        rows = range(self.fed - 1 if last_only else start, self.fed)
        logits = []
        shared = [t for t in rows if t < self.budget]
        if shared:
            logits.append(self.forward(0, shared[-1], len(shared)))
        for t in rows[len(shared) :]:
            is_wanted = self.chosen is None or t in self.chosen
            logits.append(self.forward(t - self.budget + 1, t, 1) if is_wanted else self.blank())
        return torch.cat(logits)

    def forward(self, first: int, last: int, count: int) -> Tensor:
        """Logits of the last ``count`` tokens of a fresh forward over tokens ``first`` to ``last``."""
        recorder = None if self.recorder is None else Shifted(self.recorder, first, count)
        run = Pass(self.model, self.inner, prompt_tokens=1, recorder=recorder)
        return run.feed(self.ids[first : last + 1], last_only=count == 1)[-count:]

    def blank(self) -> Tensor:
        vocabulary = self.model.config.get_text_config(decoder=True).vocab_size
        return torch.full((1, vocabulary), torch.nan, dtype=self.model.dtype, device=self.model.device)

    def evicted_at(self) -> Tensor:
        """(L, H, T): token j is last read for the prediction at j + B − 1."""
        gone = (torch.arange(self.fed) + self.budget).clamp(max=self.fed)
        return gone.expand(self.layers, self.kv_heads, -1)

    freed_at = evicted_at

    def quantised_at(self) -> tuple[Tensor, Tensor] | None:
        """Nothing is stored, so nothing is quantised."""
        return None

    def notes(self) -> list[str]:
        """How many positions were computed, where not all were."""
        later = self.fed - self.budget
        if self.chosen is None or later <= len(self.chosen):
            return []
        return [
            f"Re-computation needs one forward pass over {plural(self.budget, 'token')} for every position: the first "
            f"{self.budget} and {len(self.chosen)} of the {later} later positions were computed, the others left out."
        ]


class Shifted:
    """Passes on the last rows of a fresh window, at their places in the text."""

    def __init__(self, recorder: Recorder, first: int, count: int):
        self.recorder, self.first, self.count = recorder, first, count

    def enter(self, layer: int, key: Tensor, value: Tensor, queries: Tensor) -> None:
        last = slice(-self.count, None)
        self.recorder.enter(layer, key[:, last], value[:, last], queries[last] + self.first)

    def record(self, layer: int, weights: Tensor, positions: Tensor, visible: Tensor, queries: Tensor) -> None:
        last = slice(-self.count, None)
        self.recorder.record(
            layer, weights[:, last], positions + self.first, visible[:, last], queries[last] + self.first
        )


def sample(tokens: int, budget: int) -> frozenset[int]:
    """Positions from ``budget`` on that are computed: all, or evenly spread ones, the last among them."""
    later = max(0, tokens - budget)
    count = min(later, max(16, AFFORDABLE_TOKENS // budget))
    return frozenset(budget + (rank + 1) * later // count - 1 for rank in range(count)) if count else frozenset()

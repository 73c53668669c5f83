"""What every row of a run saw in every layer, made again from its trace: kept sets, pattern, the model's own window."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.cache.slots import native_windows
from kvviz.run.rotation import ropes_of
from kvviz.run.trace import Trace
from kvviz.run.visibility import shift_of


class TraceMasks:
    """The masks of the rows up to ``query``, (H, T, T) bool each; T = query + 1 − ``first``.

    ``first`` is above 0 for re-computation alone, which reads the window of the query afresh and nothing before it.
    """

    def __init__(self, model: PreTrainedModel, trace: Trace, query: int):
        policy = trace.setup.policy
        budget = policy.size
        self.first = max(0, query + 1 - budget) if policy.recomputes and budget else 0
        self.trace, self.device = trace, model.device
        self.windows = native_windows(model.config)
        self.ropes = ropes_of(model) if trace.setup.positions == "slot" else []
        self.heads = torch.arange(trace.kv_heads, device=self.device).view(-1, 1, 1)
        self.keys = torch.arange(query + 1 - self.first, device=self.device)
        self.rows = self.keys[:, None]

    def kept(self, layer: int) -> Tensor:
        """Which keys are in the cache when each row attends."""
        is_past, distance = self.keys <= self.rows, self.rows - self.keys
        window = self.windows[layer]
        if window is not None:
            is_past = is_past & (distance < window)
        if self.trace.setup.policy.recomputes:  # a fresh forward evicts nothing
            return is_past.expand(len(self.heads), -1, -1)
        ends = torch.tensor(self.trace.evicted_at[layer], device=self.device)[:, None, : len(self.keys)]
        # one that decides after its token has attended still shows that token what it then evicts
        return is_past & (self.rows < ends + self.trace.setup.policy.timing.delay)

    def visible(self, layer: int) -> Tensor:
        """Which of them the pattern shows."""
        kept, pattern = self.kept(layer), self.trace.setup.pattern
        return kept if pattern.hides_nothing else kept & pattern.sees(self.rows, self.keys, layer, self.heads)

    def union(self, layer: int) -> Tensor:
        """(T, T): what any head sees, counted in the whole text; information passes through every one of them."""
        whole = torch.zeros(2 * (self.first + len(self.keys),), dtype=torch.bool, device=self.device)
        whole[self.first :, self.first :] = self.visible(layer).any(0)
        return whole

    def shift(self, layer: int) -> Tensor | None:
        """How far slot positions move each key towards its query; None with original positions."""
        if not self.ropes:
            return None
        return shift_of(self.kept(layer), self.keys, self.keys.expand(len(self.heads), -1))

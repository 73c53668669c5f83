"""What happened to every token of a run, written down block by block."""

from __future__ import annotations

import torch
from torch import Tensor

from kvviz.cache.quantiser import NEVER


class FirstSteps:
    """When something happened to each token in each layer and head, (L, H, T); the first time counts."""

    def __init__(self, layers: int, kv_heads: int, device: torch.device) -> None:
        self.steps = torch.empty(layers, kv_heads, 0, dtype=torch.long, device=device)

    def grow(self, tokens: int, rows: int) -> None:
        if tokens > self.steps.shape[-1]:  # by many tokens at once, or stepping would copy it every time
            spare = self.steps.new_full((*self.steps.shape[:2], max(rows, 1024)), NEVER)
            self.steps = torch.cat([self.steps, spare], dim=-1)

    def note(self, layers: list[int], positions: Tensor, at: Tensor) -> None:
        """Slots with these positions, (H, K), met it ``at`` these steps; an earlier step written down before stands.

        Slots that never did are left out: a step costs by how many did, not by the length of the text.
        """
        heads, slots = (at < NEVER).nonzero(as_tuple=True)
        layer = torch.tensor(layers, device=at.device)[:, None]
        places = layer, heads, positions[heads, slots]
        self.steps[places] = torch.minimum(self.steps[places], at[heads, slots])

    def until(self, tokens: int) -> Tensor:
        return self.steps[..., :tokens].clamp(max=tokens)


def most_held(evicted_at: Tensor) -> int:
    """The most entries that one layer and head held after a step, from their lifetimes (L, H, T)."""
    leaving = torch.zeros(*evicted_at.shape[:2], evicted_at.shape[2] + 1, dtype=torch.long, device=evicted_at.device)
    leaving.scatter_add_(-1, evicted_at, torch.ones_like(evicted_at))
    entered = torch.arange(1, evicted_at.shape[2] + 1, device=evicted_at.device)
    return int((entered - leaving[..., :-1].cumsum(-1)).max())

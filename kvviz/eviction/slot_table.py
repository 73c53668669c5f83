"""The slots of one block while its rows are decided."""

from __future__ import annotations

import torch
from torch import Tensor

from kvviz.cache.quantiser import NEVER


class SlotTable:
    """Which slots of a block are alive, equally many in every head, and when the others left. Axes (…, K).

    A slot that the model's own window has closed over in some heads only counts as alive until all heads can empty one.
    """

    def __init__(self, positions: Tensor, carried: int, delay: int):
        self.positions = positions  # (…, K)
        self.leaves_at = torch.full_like(positions, NEVER)
        # one record for both, but where a policy decides after its token has attended
        self.gone_at = self.leaves_at.clone() if delay else self.leaves_at
        self.freed_at = self.gone_at  # a record of its own once the model's window closes over a slot in some heads
        self.is_alive = torch.zeros_like(positions, dtype=torch.bool)
        self.is_alive[..., :carried] = True
        self.taken = self.count = carried  # slots taken so far; those alive in each head
        self.first_unseen = NEVER  # the first query that cannot see some slot it might have seen
        self.indices: Tensor | None = None  # (…, n) of the slots alive, where they are known

    @property
    def is_whole(self) -> bool:
        """Whether nothing has left."""
        return self.count == self.taken

    def append(self, count: int) -> None:
        """The next ``count`` tokens of the block take slots."""
        if not count:
            return
        self.is_alive[..., self.taken : self.taken + count] = True
        if self.indices is not None:
            new = torch.arange(self.taken, self.taken + count, device=self.positions.device)
            self.indices = torch.cat([self.indices, new.expand(*self.indices.shape[:-1], -1)], -1)
        self.taken += count
        self.count += count

    def alive(self) -> Tensor:
        """The indices of the slots alive, (…, n)."""
        if self.indices is None:
            self.indices = self.is_alive.nonzero()[:, -1].view(*self.is_alive.shape[:-1], -1)
        return self.indices

    def held(self) -> Tensor:
        """Their positions, (…, n)."""
        return self.positions.gather(-1, self.alive())

    def present_after(self, step: int) -> Tensor:
        """Which slots are taken after this step, (…, K) bool."""
        return (self.positions <= step) & (step < self.gone_at)

    def visible(self, first: int, end: int, window: int | None) -> Tensor:
        """Which slots each of the queries from ``first`` up to ``end`` sees, (H, r, K)."""
        alive = self.is_alive[:, None]
        if end - first == 1 and window is None:  # a single row sees all that is alive
            return alive
        queries = torch.arange(first, end, device=alive.device)[:, None]
        seen = alive & (self.positions[:, None] <= queries)
        return seen if window is None else seen & (self.positions[:, None] > queries - window)

    def mark(self, gone: Tensor, leaves_at: int, gone_at: int) -> None:
        """Write down that these slots, (…, K) bool, leave, unless they have left before; they still take memory."""
        self.first_unseen = min(self.first_unseen, leaves_at)
        if self.freed_at is self.gone_at:
            self.freed_at = self.gone_at.clone()
        for record, when in self.records(leaves_at, gone_at):
            record.copy_(torch.where(gone, record.clamp(max=when), record))

    def drop(self, slots: Tensor, leaves_at: int, gone_at: int, kept: Tensor | None = None) -> None:
        """Empty these slots, (…, n), equally many in every head; ``kept`` are the indices of the others, if known."""
        self.first_unseen, self.indices = min(self.first_unseen, leaves_at), kept
        for record, when in self.records(leaves_at, gone_at):
            record.scatter_(-1, slots, record.gather(-1, slots).clamp(max=when))
        self.free(slots, gone_at)
        self.is_alive.scatter_(-1, slots, False)
        self.count -= slots.shape[-1]

    def records(self, leaves_at: int, gone_at: int) -> list[tuple[Tensor, int]]:
        own = [(self.leaves_at, leaves_at)]
        return own if self.gone_at is self.leaves_at else [*own, (self.gone_at, gone_at)]

    def free(self, slots: Tensor, at: int) -> None:
        """Write down that these slots, (…, n), take no memory from this step on."""
        if self.freed_at is not self.gone_at:
            self.freed_at.scatter_(-1, slots, at)

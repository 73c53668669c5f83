"""What both kinds of eviction do at a row: close the model's own window, then drop what the policy does not keep."""

from __future__ import annotations

import torch
from torch import Tensor

from kvviz.eviction.schedule import RunContext
from kvviz.eviction.slot_table import SlotTable
from kvviz.policies import Policy


class Evictor:
    """The policy in one layer, or in several that share window and limits; ``heads`` is 1 where all are alike."""

    def __init__(self, policy: Policy, window: int | None, context: RunContext, layers: list[int], heads: int):
        self.policy, self.window, self.context = policy, window, context
        self.first_layer = layers[0]
        self.layer = torch.tensor(layers, device=context.device).view(-1, 1, 1)  # as in View
        self.head = torch.arange(heads, device=context.device).view(-1, 1)

    def limit(self, newest: int) -> int | None:
        return self.policy.limit(self.context.moment(newest, self.first_layer))

    def is_over(self, newest: int, slots: int) -> bool:
        """Whether the policy has to let go of something at this moment."""
        limit = self.limit(newest)
        return limit is not None and slots > limit

    def may_lose(self, newest: int, slots: int) -> bool:
        """Whether anything can leave at this moment, by the model's own window or by the policy."""
        return (self.window is not None and newest >= self.window) or self.is_over(newest, slots)

    def close_window(self, table: SlotTable, newest: int) -> Tensor | None:
        """Write down what leaves the model's own window; of it, (…, K) bool, what still takes slots, None if nothing.

        Heads that hold different tokens lose them at different times, but all empty as many slots.
        """
        if self.window is None or newest < self.window:
            return None
        beyond = table.is_alive & (table.positions <= newest - self.window)
        shared = int(beyond.sum(-1).min())  # every head can spare as many of its oldest slots
        if shared:
            table.drop(table.alive()[..., :shared], newest, newest)
            beyond &= table.is_alive
        table.mark(beyond, newest, newest)
        return beyond if bool(beyond.any()) else None

    def keep(
        self,
        table: SlotTable,
        newest: int,
        limit: int,
        alive: Tensor,
        statistics: dict[str, Tensor],
        beyond: Tensor | None,
    ) -> None:
        """Of the slots ``alive`` (…, n) let go of those that the policy does not keep.

        Where the window has just taken an entry from some heads, it makes room for the newcomer there, and the policy
        chooses in the others.
        """
        view = self.context.view(table.positions.gather(-1, alive), newest, self.layer, self.head, limit, statistics)
        keep = self.policy.keep(view)
        if beyond is not None:
            is_beyond = beyond.gather(-1, alive)
            keep = torch.where(is_beyond.any(-1, keepdim=True), ~is_beyond, keep)
        gone, kept = (alive[chosen].view(*alive.shape[:-1], -1) for chosen in (~keep, keep))
        self.drop(table, gone, newest, kept)

    def drop(self, table: SlotTable, gone: Tensor, newest: int, kept: Tensor | None = None) -> None:
        """These slots leave for the newest token: it still sees them where the policy decides after it attended."""
        table.drop(gone, newest + self.policy.timing.delay, newest, kept)

"""Who leaves when, for policies that read attention: row by row inside one layer.

A policy that reads attention can decide about token t only when the attention of the tokens before t is known, and that
depends on what they could still see. So the rows of a block are walked one at a time; rows at which nothing can leave
are taken together. A row computes with all slots of the block, the empty ones hidden: to gather those alive would take
longer than the arithmetic on the others.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from kvviz.cache.quantiser import Coding
from kvviz.eviction.by_position import BlockPlan, PlanContext
from kvviz.eviction.slot_table import Step
from kvviz.models.threads import one_core
from kvviz.policies import Policy, Scored

# Weights (H, G, r, K) of some rows: (rows, positions of the slots (H, K), which of them a row can see (H, r, K)).
Weigh = Callable[[slice, Tensor, Tensor], Tensor]
# From some row of the block on, keys are seen coded: (heads (e,), slots (e, residual), the first such row).
Recode = Callable[[Tensor, Tensor, int], None]


class Walk:
    """One layer's slots: their positions, what attention they received, and the latest rows a policy wants to see.

    Inside a block all of it is kept by slot, dropped ones included, so that an eviction copies no history.
    """

    def __init__(self, policy: Policy, layer: int, window: int | None, kv_heads: int, context: PlanContext):
        self.policy, self.layer, self.window, self.context = policy, layer, window, context
        self.kv_heads = kv_heads
        self.head_axis = torch.arange(kv_heads, device=context.device).view(-1, 1)
        self.layer_axis = torch.tensor([[layer]], device=context.device)
        self.positions = self.head_axis.new_empty(kv_heads, 0)
        self.received: Tensor | None = None  # (H, n)
        self.rows: Tensor | None = None  # (H, observes, n)
        self.coder = context.coder(kv_heads)

    def block(self, start: int, rows: int, weigh: Weigh, weights: Tensor, recode: Recode | None = None) -> BlockPlan:
        """Walk ``rows`` rows from position ``start`` on; fills ``weights`` (H, G, R, K) and returns who left when."""
        carried = self.positions.shape[1]
        new = torch.arange(start, start + rows, device=self.positions.device).expand(self.kv_heads, -1)
        step = Step(torch.cat([self.positions, new], 1), carried, self.policy.decides_after)
        self.make_room(weights, carried)
        if self.coder is not None:
            self.coder.begin(rows)
        with one_core():  # products of one row are too small to share out
            self.walk(step, start, rows, weigh, weights, recode)
        self.positions = step.held()
        survivors = None if step.is_whole else step.alive()
        self.carry(survivors, rows)
        return BlockPlan(step.positions, step.leaves_at, survivors, step.gone_at, self.codings(start, survivors))

    def walk(self, step: Step, start: int, rows: int, weigh: Weigh, weights: Tensor, recode: Recode | None) -> None:
        row = 0
        while row < rows:
            step.append(1)
            if not self.policy.decides_after or self.window is not None:
                self.evict(step, start + row, row, is_after=False)
            count = self.quiet(step, start + row, rows - row)
            step.append(count - 1)
            self.attend(step, start, slice(row, row + count), weigh, weights)
            row += count
            if self.policy.decides_after:
                self.evict(step, start + row - 1, row, is_after=True)
            self.code(step, start, slice(row - count, row), recode)

    def code(self, step: Step, start: int, part: slice, recode: Recode | None) -> None:
        """After each of these rows, code what has to be; only after the last of them keys may be."""
        if self.coder is None:
            return
        for row in range(part.start, part.stop):
            is_held = (step.positions <= start + row) & (start + row < step.gone_at)
            coded = self.coder.after(start + row, is_held)
            if coded is not None and recode is not None:
                recode(*coded, row + 1)

    def codings(self, start: int, survivors: Tensor | None) -> tuple[Coding, ...]:
        if self.coder is None:
            return ()
        coding = self.coder.coding(start, 0, self.kv_heads)
        if survivors is not None:
            self.coder.retain(survivors)
        return (coding,)

    def make_room(self, weights: Tensor, carried: int) -> None:
        """For the block's own slots, which have received nothing yet, and for its own rows."""
        rows, slots = weights.shape[2:]
        if self.received is None or self.rows is None:
            self.received = weights.new_zeros(self.kv_heads, carried)
            self.rows = weights.new_zeros(self.kv_heads, self.policy.observes, carried)
        self.received = F.pad(self.received, (0, slots - carried))
        if self.policy.observes:
            self.rows = F.pad(self.rows, (0, slots - carried, 0, rows))

    def carry(self, survivors: Tensor | None, rows: int) -> None:
        """Keep the history of the slots that survive for the next block."""
        assert self.received is not None and self.rows is not None
        self.rows = self.rows[:, rows:]
        if survivors is not None:
            self.received = self.received.gather(1, survivors)
            self.rows = self.rows.gather(2, survivors[:, None].expand(-1, self.policy.observes, -1))

    def rows_seen(self, row: int, count: int) -> Tensor:
        """The latest ``count`` rows before row ``row`` of the block, (H, count, K)."""
        assert self.rows is not None
        end = row + self.policy.observes
        return self.rows[:, end - count : end]

    def quiet(self, step: Step, newest: int, rows_left: int) -> int:
        """How many rows from ``newest`` on can be taken together because nothing leaves between them."""
        slots, count = step.count, 1
        if self.coder is not None:  # later rows see the keys that are coded after this one
            waiting = self.coder.waiting((step.positions <= newest) & (newest < step.gone_at))
            rows_left = min(rows_left, max(1, self.coder.storage.residual - waiting + 1))
        while count < rows_left and not self.ends_at(newest + count - 1, slots + count - 1):
            if self.begins_at(newest + count, slots + count):
                break
            count += 1
        return count

    def begins_at(self, newest: int, slots: int) -> bool:
        """Whether something may leave before ``newest`` attends."""
        is_beyond = self.window is not None and newest >= self.window
        return is_beyond or (not self.policy.decides_after and self.is_over(newest, slots))

    def ends_at(self, newest: int, slots: int) -> bool:
        """Whether something may leave when ``newest`` has attended."""
        return self.policy.decides_after and self.is_over(newest, slots)

    def is_over(self, newest: int, slots: int) -> bool:
        limit = self.limit(newest)
        return limit is not None and slots > limit

    def limit(self, newest: int) -> int | None:
        return self.policy.limit(self.context.moment(newest, self.layer))

    def attend(self, step: Step, start: int, part: slice, weigh: Weigh, weights: Tensor) -> None:
        """Compute the weights of some rows over the slots taken, and remember what the slots received."""
        assert self.received is not None and self.rows is not None
        visible = step.visible(start + part.start, start + part.stop, self.window)
        mine = weigh(part, step.positions, visible)  # (H, G, r, K)
        weights[:, :, part] = mine
        shared = mine.mean(1)  # a KV head's score is the mean over its group of query heads
        self.received += shared.sum(1)
        if self.policy.observes:
            self.rows[:, part.start + self.policy.observes : part.stop + self.policy.observes] = shared

    def evict(self, step: Step, newest: int, row: int, is_after: bool) -> None:
        """Let go of what the model's own window no longer reaches, then of what the policy does not keep.

        ``row`` is the first row of the block whose attention is not known yet.
        """
        beyond = None if is_after else self.beyond_window(step, newest)
        limit = self.limit(newest)
        if self.policy.decides_after is not is_after or limit is None or step.count <= limit:
            return
        if step.count == limit + 1 and isinstance(self.policy, Scored) and not is_after:
            gone = self.lowest(step, newest, row, limit, beyond)
        else:
            gone = self.refused(step, newest, row, limit, beyond)
        step.drop(gone, newest + is_after, newest)

    def beyond_window(self, step: Step, newest: int) -> Tensor | None:
        """Write down what leaves the model's own window; of it, (H, K) bool, what still takes slots, None if nothing.

        Heads that hold different tokens lose them at different times, but all empty as many slots.
        """
        if self.window is None or newest < self.window:
            return None
        beyond = step.is_alive & (step.positions <= newest - self.window)
        shared = int(beyond.sum(1).min())  # every head can spare as many of its oldest slots
        if shared:
            step.drop(step.alive()[:, :shared], newest, newest)
            beyond &= step.is_alive
        step.mark(beyond, newest, newest)
        return beyond if bool(beyond.any()) else None

    def lowest(self, step: Step, newest: int, row: int, limit: int, beyond: Tensor | None) -> Tensor:
        """The slot of every head that leaves where one has to, (H, 1): of equal scores the first is the oldest."""
        assert isinstance(self.policy, Scored) and self.received is not None
        seen = {"received": self.received, "rows": self.rows_seen(row, min(self.policy.observes, newest))}
        view = self.context.view(step.positions, newest, self.layer_axis, self.head_axis, limit, **seen)
        score = self.policy.score(view).masked_fill(~step.is_alive, torch.inf)
        if beyond is not None:  # where the window took one, it makes room for the newcomer
            score = score.masked_fill(beyond, -torch.inf)
        return score.argmin(1, keepdim=True)

    def refused(self, step: Step, newest: int, row: int, limit: int, beyond: Tensor | None) -> Tensor:
        """The slots that the policy does not keep, (H, n)."""
        assert self.received is not None
        alive = step.alive()
        known = min(self.policy.observes, newest + self.policy.decides_after)
        rows = self.rows_seen(row, known).gather(2, alive[:, None].expand(-1, known, -1))
        seen = {"received": self.received.gather(1, alive), "rows": rows}
        view = self.context.view(step.held(), newest, self.layer_axis, self.head_axis, limit, **seen)
        keep = self.policy.keep(view)
        if beyond is not None:
            is_beyond = beyond.gather(1, alive)
            keep = torch.where(is_beyond.any(1, keepdim=True), ~is_beyond, keep)
        return alive[~keep].view(len(alive), -1)

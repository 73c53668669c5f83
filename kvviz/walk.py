"""Who leaves when, for policies that read attention: row by row inside one layer, on the kept slots only.

A policy that reads attention can decide about token t only when the attention of the tokens before t is known, and that
depends on what they could still see. So the rows of a block are walked one at a time; rows at which nothing can leave
are taken together.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from kvviz.coding import Coding
from kvviz.plan import STILL_THERE, BlockPlan, PlanContext
from kvviz.policies import Policy

# Weights (H, G, r, m) of some rows: (rows, slots alive (H, m), their positions (H, m), which a row sees; None = all).
Weigh = Callable[[slice, Tensor, Tensor, Tensor | None], Tensor]
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
        self.carry(step.alive, rows)
        self.positions = step.held
        is_whole = step.alive.shape[1] == step.positions.shape[1]
        survivors = None if is_whole else step.alive
        return BlockPlan(step.positions, step.leaves_at, survivors, step.gone_at, self.codings(start, survivors))

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

    def carry(self, alive: Tensor, rows: int) -> None:
        """Keep the history of the slots alive for the next block."""
        assert self.received is not None and self.rows is not None
        self.received = self.received.gather(1, alive)
        self.rows = self.rows_seen(alive, rows, self.policy.observes)

    def rows_seen(self, alive: Tensor, row: int, count: int) -> Tensor:
        """The latest ``count`` rows before row ``row`` of the block, over the slots alive, (H, count, m)."""
        assert self.rows is not None
        end = row + self.policy.observes
        return self.rows[:, end - count : end].gather(2, alive[:, None].expand(-1, count, -1))

    def quiet(self, step: Step, newest: int, rows_left: int) -> int:
        """How many rows from ``newest`` on can be taken together because nothing leaves between them."""
        slots, count = step.alive.shape[1], 1
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
        """Compute the weights of some rows over the slots alive, and remember what the slots received."""
        assert self.received is not None and self.rows is not None
        # a single row sees all that is alive, unless the model's own window has closed over some of it
        is_all = part.stop - part.start == 1 and self.window is None
        visible = None if is_all else step.visible(start + part.start, start + part.stop, self.window)
        mine = weigh(part, step.alive, step.held, visible)  # (H, G, r, m)
        slots = step.alive[:, None, None].expand(mine.shape)
        weights[:, :, part].scatter_(-1, slots, mine)
        shared = mine.mean(1)  # a KV head's score is the mean over its group of query heads
        self.received.scatter_add_(1, step.alive, shared.sum(1))
        if self.policy.observes:
            mine = self.rows[:, part.start + self.policy.observes : part.stop + self.policy.observes]
            mine.scatter_(2, step.alive[:, None].expand(shared.shape), shared)

    def evict(self, step: Step, newest: int, row: int, is_after: bool) -> None:
        """Let go of what the model's own window no longer reaches, then of what the policy does not keep.

        ``row`` is the first row of the block whose attention is not known yet.
        """
        is_within: Tensor | None = None
        if not is_after and self.window is not None and newest >= self.window:
            is_within = step.held > newest - self.window
            shared = int((~is_within).sum(1).min())  # every head can spare as many of its oldest slots
            if shared:
                keep = torch.ones_like(is_within)
                keep[:, :shared] = False
                step.drop(keep, newest, newest)
                is_within = is_within[:, shared:]
            step.mark(~is_within, newest, newest)
            is_within = None if bool(is_within.all()) else is_within
        limit = self.limit(newest)
        if self.policy.decides_after is not is_after or limit is None or step.alive.shape[1] <= limit:
            return
        assert self.received is not None
        known = min(self.policy.observes, newest + is_after)
        seen = {"received": self.received.gather(1, step.alive), "rows": self.rows_seen(step.alive, row, known)}
        keep = self.policy.keep(self.context.view(step.held, newest, self.layer_axis, self.head_axis, limit, **seen))
        if is_within is not None:  # the window took one from some heads only: it makes room for the newcomer there
            keep = torch.where(is_within.all(1, keepdim=True), keep, is_within)
        step.drop(keep, newest + is_after, newest)


class Step:
    """The slots of one block while it is walked: which are alive, and when the others left."""

    def __init__(self, positions: Tensor, carried: int, is_after: bool):
        self.positions = positions  # (H, K)
        self.leaves_at = torch.full_like(positions, STILL_THERE)
        # one record for both, but where a policy decides after its token has attended
        self.gone_at = self.leaves_at.clone() if is_after else self.leaves_at
        self.count = carried  # slots taken so far, alive or not
        self.numbers = torch.arange(positions.shape[1], device=positions.device).expand(len(positions), -1)
        self.alive = self.numbers[:, :carried]
        self.held = positions[:, :carried]

    def append(self, count: int) -> None:
        """The next ``count`` tokens of the block take slots."""
        if not count:
            return
        new = slice(self.count, self.count + count)
        self.alive = torch.cat([self.alive, self.numbers[:, new]], 1)
        self.held = torch.cat([self.held, self.positions[:, new]], 1)
        self.count += count

    def visible(self, first: int, end: int, window: int | None) -> Tensor:
        """Which slots alive each of the queries from ``first`` up to ``end`` sees, (H, r, m)."""
        queries = torch.arange(first, end, device=self.held.device)[:, None]
        seen = self.held[:, None] <= queries
        return seen if window is None else seen & (self.held[:, None] > queries - window)

    def mark(self, gone: Tensor, leaves_at: int, gone_at: int) -> None:
        """Write down that these of the alive slots, (H, m) bool, leave."""
        self.write(self.leaves_at, gone, leaves_at)
        if self.gone_at is not self.leaves_at:
            self.write(self.gone_at, gone, gone_at)

    def write(self, record: Tensor, gone: Tensor, when: int) -> None:
        before = record.gather(1, self.alive)
        record.scatter_(1, self.alive, torch.where(gone, before.clamp(max=when), before))

    def drop(self, keep: Tensor, leaves_at: int, gone_at: int) -> None:
        """Empty the slots not kept, equally many in every head; ``keep`` (H, m)."""
        self.mark(~keep, leaves_at, gone_at)
        stay = keep.nonzero()[:, 1].view(len(keep), -1)
        self.alive, self.held = self.alive.gather(1, stay), self.held.gather(1, stay)

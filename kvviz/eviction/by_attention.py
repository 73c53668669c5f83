"""Who leaves when, for policies that read attention: row by row inside one layer.

A policy that reads attention can decide about token t only when the attention of the tokens before t is known, and that
depends on what they could still see. So the rows of a block are run one at a time; rows at which nothing can leave are
taken together. A row computes with all slots of the block, the empty ones hidden: to gather those alive would take
longer than the arithmetic on the others.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kvviz.cache.quantiser import BlockQuantisation
from kvviz.eviction.evictor import Evictor
from kvviz.eviction.schedule import BlockRows, LayerSchedule, RunContext
from kvviz.eviction.slot_table import SlotTable
from kvviz.eviction.statistics import Statistics
from kvviz.models.threads import one_core
from kvviz.policies import Scored


class AttentionEviction:
    """Decides every layer while its attention is computed."""

    def __init__(self, policy: Scored, windows: list[int | None], context: RunContext):
        self.layers = [AttentionLayer(policy, layer, window, context) for layer, window in enumerate(windows)]
        self.start = self.rows = 0

    def begin(self, start: int, rows: int) -> None:
        self.start, self.rows = start, rows

    def decide(self, layer: int, rows: BlockRows) -> LayerSchedule:
        return self.layers[layer].decide(self.start, self.rows, rows)


class AttentionLayer:
    """One layer's slots: the positions they hold, and the statistics that the policy reads."""

    def __init__(self, policy: Scored, layer: int, window: int | None, context: RunContext):
        self.policy, self.window, self.kv_heads = policy, window, context.kv_heads
        self.prompt_tokens = context.prompt_tokens
        self.evictor = Evictor(policy, window, context, [layer], context.kv_heads)
        self.positions = torch.empty(context.kv_heads, 0, dtype=torch.long, device=context.device)
        self.statistics = Statistics(policy)
        self.quantiser = context.quantiser(1, context.kv_heads)

    def decide(self, start: int, rows: int, block: BlockRows) -> LayerSchedule:
        """Run ``rows`` rows from position ``start`` on; the block keeps their weights."""
        new = torch.arange(start, start + rows, device=self.positions.device).expand(self.kv_heads, -1)
        table = SlotTable(torch.cat([self.positions, new], 1), self.positions.shape[1], self.policy.timing.delay)
        is_idle = self.is_idle(start, rows)
        if is_idle and start >= self.prompt_tokens:  # what follows stays, and nothing is looked at any more
            self.statistics = Statistics(self.policy)
        else:
            self.statistics.enter(block.keys, block.values)
        if self.quantiser is not None:
            self.quantiser.begin(rows)
        if is_idle:  # the block's output needs no weights either
            table.append(rows)
        else:
            block.open_weights()
            with one_core():  # products of one row are too small to share out
                RowLoop(self, table, block, start, rows).run()
        survivors = None if table.is_whole else table.alive()
        self.positions = table.held()
        self.statistics.carry(survivors, rows)
        quantised = self.quantised(start, survivors)
        records = (table.positions, table.leaves_at, table.gone_at, table.freed_at)
        return LayerSchedule(*records, survivors, table.first_unseen, quantised)

    def is_idle(self, start: int, rows: int) -> bool:
        """Whether nothing can leave or be quantised in these rows, and no later decision looks at their attention."""
        changes = self.window is not None or self.quantiser is not None
        return not changes and not self.policy.may_use(start, start + rows, self.prompt_tokens)

    def quantised(self, start: int, survivors: Tensor | None) -> BlockQuantisation | None:
        if self.quantiser is None:
            return None
        found = self.quantiser.block(start, 0, self.kv_heads)
        if survivors is not None:
            self.quantiser.retain(survivors[None])
        return found


class RowLoop:
    """The rows of one block in one layer, one after another."""

    def __init__(self, layer: AttentionLayer, table: SlotTable, block: BlockRows, start: int, rows: int):
        self.policy, self.evictor, self.statistics = layer.policy, layer.evictor, layer.statistics
        self.window, self.quantiser = layer.window, layer.quantiser
        self.table, self.block, self.start, self.rows = table, block, start, rows
        self.row = 0  # the first row that has not attended
        self.beyond: Tensor | None = None  # what has just left the model's own window and still takes slots

    def run(self) -> None:
        while self.row < self.rows:
            first = self.row
            self.table.append(1)
            self.beyond = self.evictor.close_window(self.table, self.start + first)
            self.policy.timing.around(first, self.evict, self.attend)
            self.quantise(first)

    def attend(self) -> int:
        """The next rows attend, as many as nothing leaves between; the answer is the last of them."""
        first, count = self.row, self.together()
        self.table.append(count - 1)
        part = slice(first, first + count)
        visible = self.table.visible(self.start + first, self.start + first + count, self.window)
        self.statistics.attended(part, self.block.weigh(part, self.table.positions, visible))
        self.row += count
        return self.row - 1

    def together(self) -> int:
        """How many rows can attend at once because nothing leaves, and no key is quantised, between them."""
        newest, slots, left, count = self.start + self.row, self.table.count, self.rows - self.row, 1
        if self.quantiser is not None:  # later rows see the keys that are quantised after this one
            waiting = self.quantiser.waiting(self.table.present_after(newest)[None])
            left = min(left, max(1, self.quantiser.storage.residual - waiting + 1))
        while count < left and not self.leaves_between(newest + count, slots + count):
            count += 1
        return count

    def leaves_between(self, newest: int, slots: int) -> bool:
        """Whether something may leave after the row before ``newest`` attends and before ``newest`` does."""
        if self.window is not None and newest >= self.window:
            return True
        delay = self.policy.timing.delay
        return self.evictor.is_over(newest - delay, slots - delay)

    def evict(self, row: int) -> None:
        """Let go of what the policy does not keep for the token of ``row``."""
        newest = self.start + row
        limit = self.evictor.limit(newest)
        if limit is None or self.table.count <= limit:
            return
        known = newest + self.policy.timing.delay
        if self.table.count == limit + 1 and self.policy.scores_alone:
            self.evictor.drop(self.table, self.lowest(newest, limit, known), newest)
        else:
            alive = self.table.alive()
            seen = self.statistics.seen(self.row, known, alive)
            self.evictor.keep(self.table, newest, limit, alive, seen, self.beyond)

    def lowest(self, newest: int, limit: int, known: int) -> Tensor:
        """The slot of every head that leaves where one has to, (H, 1): of equal scores the first is the oldest.

        Empty slots are scored too, which costs less than leaving them out, and then never chosen.
        """
        seen, table = self.statistics.seen(self.row, known), self.table
        view = self.evictor.context.view(table.positions, newest, self.evictor.layer, self.evictor.head, limit, seen)
        score = self.policy.score(view).masked_fill(~table.is_alive, torch.inf)
        if self.beyond is not None:  # where the window took one, it makes room for the newcomer
            score = score.masked_fill(self.beyond, -torch.inf)
        return score.argmin(1, keepdim=True)

    def quantise(self, first: int) -> None:
        """After each row since ``first``, quantise what has to be; only after the last of them keys may be."""
        if self.quantiser is None:
            return
        for row in range(first, self.row):
            found = self.quantiser.after(self.start + row, self.table.present_after(self.start + row)[None])
            if found is not None:
                keys = self.quantiser.restored(self.block.key, *found)
                self.block.replace_keys(*found, keys, row + 1)

"""Who leaves when, for policies that look at what an entry is: its position, or numbers taken when it entered.

No attention is needed, so a block is decided before any is computed. The rule itself is the policy's ``keep``, asked
token by token; nothing is decided in closed form, so a model's own sliding window, which takes entries out of the
sight of ``keep``, combines with every policy. For positions alone, layers with the same window and the same limits are
asked together, and once for all heads where the policy treats them alike.
"""

from __future__ import annotations

from collections import defaultdict
from copy import copy

import torch
from torch import Tensor

from kvviz.eviction.evictor import Evictor
from kvviz.eviction.schedule import BlockRows, LayerSchedule, RunContext
from kvviz.eviction.slot_table import SlotTable
from kvviz.eviction.statistics import Statistics
from kvviz.policies import Policy


class LayerGroup:
    """Layers that are decided together, and the positions their slots hold now, (layers, heads, n).

    The axis of layers and that of heads are 1 where the policy treats all alike; a schedule names each head.
    """

    def __init__(self, policy: Policy, layers: list[int], window: int | None, context: RunContext):
        self.policy, self.layers, self.window, self.context = policy, layers, window, context
        own_layers, own_heads = (len(layers), context.kv_heads) if policy.differs else (1, 1)
        self.positions = torch.empty(own_layers, own_heads, 0, dtype=torch.long, device=context.device)
        self.statistics = Statistics(policy)
        self.quantiser = context.quantiser(own_layers, own_heads)

    def split(self, start: int, rows: int) -> list[LayerGroup]:
        """Itself, or several groups where its layers' limits part in the block of ``rows`` tokens from ``start``."""
        if self.policy.limits_alike() or len(self.layers) == 1:
            return [self]
        by_limits: dict[tuple[int | None, ...], list[int]] = defaultdict(list)
        for layer in self.layers:
            moments = (self.context.moment(newest, layer) for newest in range(start, start + rows))
            by_limits[tuple(map(self.policy.limit, moments))].append(layer)
        return [self] if len(by_limits) == 1 else [self.only(layers) for layers in by_limits.values()]

    def only(self, layers: list[int]) -> LayerGroup:
        """The group with these of its layers."""
        part = copy(self)
        part.layers = layers
        places = [self.layers.index(layer) if self.policy.differs else 0 for layer in layers]
        index = torch.tensor(places if self.policy.differs else places[:1], device=self.context.device)
        part.positions = self.positions[index]
        part.quantiser = None if self.quantiser is None else self.quantiser.of_layers(index)
        return part

    def evictor(self) -> Evictor:
        layers = self.layers if self.policy.differs else self.layers[:1]
        return Evictor(self.policy, self.window, self.context, layers, self.positions.shape[1])

    def advance(self, start: int, rows: int) -> dict[int, LayerSchedule]:
        """Append ``rows`` tokens from position ``start`` on, let the policy evict after each; a schedule a layer."""
        carried = self.positions.shape[-1]
        new = torch.arange(start, start + rows, device=self.context.device).expand(*self.positions.shape[:2], rows)
        table = SlotTable(torch.cat([self.positions, new], dim=-1), carried, self.policy.timing.delay)
        self.evict(table, start, rows)
        survivors = None if table.is_whole else table.alive()
        self.positions = table.positions if survivors is None else table.positions.gather(-1, survivors)
        self.statistics.carry(None if survivors is None else survivors[0], rows)
        self.quantise(table, start, rows)
        found = self.schedules(table, start, survivors)
        if self.quantiser is not None and survivors is not None:
            self.quantiser.retain(survivors)
        return found

    def evict(self, table: SlotTable, start: int, rows: int) -> None:
        """Row by row; rows at which nothing can leave cost nothing."""
        evictor, waiting = self.evictor(), 0
        for newest in range(start, start + rows):
            waiting += 1
            if not evictor.may_lose(newest, table.count + waiting):
                continue
            table.append(waiting)
            waiting = 0
            beyond = evictor.close_window(table, newest)
            limit = evictor.limit(newest)
            if limit is not None and table.count > limit:
                alive = table.alive()
                seen = self.statistics.seen(slots=alive)
                evictor.keep(table, newest, limit, alive, seen, beyond)
        table.append(waiting)

    def quantise(self, table: SlotTable, start: int, rows: int) -> None:
        """Follow what is quantised after each of the rows."""
        if self.quantiser is None:
            return
        self.quantiser.begin(rows)
        for step in range(start, start + rows):
            self.quantiser.after(step, table.present_after(step))

    def schedules(self, table: SlotTable, start: int, survivors: Tensor | None) -> dict[int, LayerSchedule]:
        """The block as each layer meets it, every head named; layers that are alike share one."""
        made = [self.schedule(table, start, survivors, index) for index in range(len(self.positions))]
        return {layer: made[min(place, len(made) - 1)] for place, layer in enumerate(self.layers)}

    def schedule(self, table: SlotTable, start: int, survivors: Tensor | None, index: int) -> LayerSchedule:
        heads = self.context.kv_heads
        return LayerSchedule(
            positions=table.positions[index].expand(heads, -1),
            leaves_at=table.leaves_at[index].expand(heads, -1),
            gone_at=table.gone_at[index].expand(heads, -1),
            freed_at=table.freed_at[index].expand(heads, -1),
            survivors=None if survivors is None else survivors[index].expand(heads, -1),
            first_unseen=table.first_unseen,
            quantisation=None if self.quantiser is None else self.quantiser.block(start, index, heads),
        )


class EntryEviction:
    """Decides the whole block at its beginning, or layer by layer where numbers of the entries are needed."""

    def __init__(self, policy: Policy, windows: list[int | None], context: RunContext):
        self.needs_entries = bool(policy.needs)
        by_window: dict[tuple[int | None, int], list[int]] = defaultdict(list)
        for layer, window in enumerate(windows):
            by_window[window, layer if self.needs_entries else 0].append(layer)
        self.groups = [LayerGroup(policy, layers, window, context) for (window, _), layers in by_window.items()]
        self.start = self.rows = 0
        self.schedules: dict[int, LayerSchedule] = {}

    def begin(self, start: int, rows: int) -> None:
        self.start, self.rows, self.schedules = start, rows, {}
        if not self.needs_entries:
            self.groups = [part for group in self.groups for part in group.split(start, rows)]
            for group in self.groups:
                self.schedules |= group.advance(start, rows)

    def decide(self, layer: int, rows: BlockRows) -> LayerSchedule:
        if layer not in self.schedules:  # each layer is a group of its own
            group = next(group for group in self.groups if layer in group.layers)
            if self.is_over(group):  # what follows stays, and nothing is looked at any more
                group.statistics = Statistics(group.policy)
            else:
                group.statistics.enter(rows.keys, rows.values)
            self.schedules |= group.advance(self.start, self.rows)
        return self.schedules[layer]

    def is_over(self, group: LayerGroup) -> bool:
        """Whether the prompt has been read, and the policy looks at nothing after it."""
        prompt = group.context.prompt_tokens
        return self.start >= prompt and not group.policy.may_use(self.start, self.start + self.rows, prompt)

"""Who leaves when, for policies that look at positions alone: decided before any attention is computed.

The rule itself is the policy's ``keep``, asked token by token; nothing is decided in closed form, so a model's own
sliding window, which takes entries out of ``keep``'s sight, combines with every policy. Layers with the same window
are asked together, and once for all heads where the policy treats them alike.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from kvviz.cache.quantiser import Coder, Coding
from kvviz.choices.storage import Native, Quantised, Storage
from kvviz.policies import Moment, Policy, View

STILL_THERE = 2**31 - 1  # the step at which a token leaves that has not left


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """What a block of R rows meets in one group of layers. The layer and head axes are 1 where all are alike."""

    positions: Tensor  # (G or 1, H or 1, K): the slots carried into the block, then the block's own tokens
    leaves_at: Tensor  # the same shape: the first step that cannot see the slot, or STILL_THERE
    survivors: Tensor | None  # (G or 1, H or 1, n) indices into K of the slots left after the block; None = all
    gone_at: Tensor | None = None  # where it differs from leaves_at: the first step after which the slot is empty
    codings: tuple[Coding, ...] = ()  # of every layer, or one where all are alike; none unless the storage quantises

    def layer(self, index: int) -> BlockPlan:
        """The plan of one layer of the group, its layer axis dropped."""
        i = index if len(self.positions) > 1 else 0
        survivors = None if self.survivors is None else self.survivors[i]
        return BlockPlan(self.positions[i], self.leaves_at[i], survivors, codings=self.codings[i : i + 1])

    @property
    def coding(self) -> Coding | None:
        """Of a plan for one layer: what is coded when."""
        return self.codings[0] if self.codings else None

    def kept_whole(self) -> BlockPlan:
        """The same block before its slots have shrunk."""
        return replace(self, survivors=None)


class Group:
    """The layers that share one native sliding window, and the positions their slots hold now."""

    def __init__(self, policy: Policy, layers: list[int], window: int | None, kv_heads: int, context: PlanContext):
        self.policy, self.layers, self.window, self.context = policy, layers, window, context
        alike = not policy.differs
        layer_axis = layers[:1] if alike else layers
        self.layer_axis = torch.tensor(layer_axis, device=context.device).view(-1, 1, 1)
        self.head_axis = torch.arange(1 if alike else kv_heads, device=context.device).view(-1, 1)
        self.positions = torch.empty(len(layer_axis), len(self.head_axis), 0, dtype=torch.long, device=context.device)
        self.kv_heads, self.coder = kv_heads, context.coder(len(layer_axis), len(self.head_axis))

    def advance(self, start: int, rows: int) -> BlockPlan:
        """Append ``rows`` tokens from position ``start`` on and let the policy evict after each."""
        plan = self.evicted(start, rows)
        return plan if self.coder is None else self.coded(self.coder, plan, start, rows)

    def coded(self, coder: Coder, plan: BlockPlan, start: int, rows: int) -> BlockPlan:
        """The plan with what is coded after each of its rows."""
        coder.begin(rows)
        for step in range(start, start + rows):
            coder.after(step, (plan.positions <= step) & (step < plan.leaves_at))
        codings = tuple(coder.coding(start, index, self.kv_heads) for index in range(len(plan.positions)))
        if plan.survivors is not None:
            coder.retain(plan.survivors)
        return replace(plan, codings=codings)

    def evicted(self, start: int, rows: int) -> BlockPlan:
        """The plan with who leaves when."""
        new = torch.arange(start, start + rows, device=self.context.device).expand(*self.positions.shape[:2], rows)
        positions = torch.cat([self.positions, new], dim=-1)
        leaves_at = torch.full_like(positions, STILL_THERE)
        if not self.can_lose(start + rows - 1, positions.shape[-1]):
            self.positions = positions
            return BlockPlan(positions, leaves_at, None)
        alive = self.walk(positions, leaves_at, start, rows)
        self.positions = positions.gather(-1, alive)
        is_whole = alive.shape[-1] == positions.shape[-1]
        return BlockPlan(positions, leaves_at, None if is_whole else alive)

    def can_lose(self, newest: int, slots: int) -> bool:
        limit = self.limit(newest)
        return (limit is not None and slots > limit) or (self.window is not None and newest >= self.window)

    def limit(self, newest: int) -> int | None:
        return self.policy.limit(self.context.moment(newest, self.layers[0]))

    def walk(self, positions: Tensor, leaves_at: Tensor, start: int, rows: int) -> Tensor:
        """Row by row, fill ``leaves_at``; the answer is the indices of the slots alive at the end."""
        carried = positions.shape[-1] - rows
        alive = torch.arange(carried, device=positions.device).expand(*positions.shape[:2], carried)
        for row in range(rows):
            newest = start + row
            own = alive.new_full((*positions.shape[:2], 1), carried + row)
            alive = torch.cat([alive, own], dim=-1)
            if not self.can_lose(newest, alive.shape[-1]):
                continue
            alive = self.evict(alive, positions, leaves_at, newest)
        return alive

    def evict(self, alive: Tensor, positions: Tensor, leaves_at: Tensor, newest: int) -> Tensor:
        """Let go of what the model's own window no longer reaches, then of what the policy does not keep."""
        is_within = positions.gather(-1, alive) > newest - (self.window or STILL_THERE)
        lost = (~is_within).sum(-1)
        if bool((lost == lost[0, 0]).all()):
            alive = drop(alive, is_within, leaves_at, newest)
            is_within = is_within.new_ones(alive.shape)
        limit = self.limit(newest)
        if limit is None or alive.shape[-1] <= limit:
            return alive
        held = positions.gather(-1, alive)
        keep = self.policy.keep(self.context.view(held, newest, self.layer_axis, self.head_axis, limit))
        # Heads hold different tokens, so the window may take one from some heads only; it makes room for the newcomer
        # there, and the policy chooses in the others.
        return drop(alive, torch.where(is_within.all(-1, keepdim=True), keep, is_within), leaves_at, newest)


@dataclass(frozen=True)
class PlanContext:
    """What every group of layers knows of the run."""

    layers: int
    prompt_tokens: int
    device: torch.device
    storage: Storage = field(default_factory=Native)

    def coder(self, *shape: int) -> Coder | None:
        """Who follows what is coded; None unless the storage quantises."""
        return Coder(self.storage, shape, self.device) if isinstance(self.storage, Quantised) else None

    def moment(self, newest: int, layer: int) -> Moment:
        return Moment(newest, layer, self.layers, self.prompt_tokens)

    def view(self, positions: Tensor, newest: int, layer: Tensor, head: Tensor, limit: int, **seen: Tensor) -> View:
        """What a policy is shown; ``seen`` is what attention it may read."""
        return View(positions, newest, layer, head, self.layers, self.prompt_tokens, limit, **seen)


def drop(alive: Tensor, keep: Tensor, leaves_at: Tensor, newest: int) -> Tensor:
    """Note that the slots not kept leave at ``newest``; the indices of those kept, equally many in every head."""
    if bool(keep.all()):
        return alive
    count = int(keep[0, 0].sum())
    leaves_at.scatter_(-1, alive, torch.where(keep, leaves_at.gather(-1, alive), newest))
    return alive[keep].view(*alive.shape[:2], count)


class Plan:
    """The plans of all layers, block after block."""

    def __init__(self, policy: Policy, windows: list[int | None], kv_heads: int, context: PlanContext):
        by_window: dict[int | None, list[int]] = defaultdict(list)
        for layer, window in enumerate(windows):
            by_window[window].append(layer)
        self.groups = [Group(policy, layers, window, kv_heads, context) for window, layers in by_window.items()]
        self.place = {layer: (g, i) for g, group in enumerate(self.groups) for i, layer in enumerate(group.layers)}
        self.blocks: list[BlockPlan] = []

    def advance(self, start: int, rows: int) -> None:
        """Decide the block of ``rows`` tokens that starts at position ``start``, for every layer."""
        self.blocks = [group.advance(start, rows) for group in self.groups]

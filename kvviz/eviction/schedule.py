"""What an eviction answers for one layer and one block of rows, and what it must know of the run to do so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from kvviz.cache.opening import open_quantiser
from kvviz.cache.quantiser import NEVER, BlockQuantisation, Quantiser
from kvviz.choices.storage import Native, Storage
from kvviz.policies import Moment, View


@dataclass(frozen=True, eq=False)
class LayerSchedule:
    """What a block of R rows meets in one layer: H KV heads, K slots. Layers that are all alike share one object.

    Heads that are all alike share memory (an axis expanded from 1), which ``one_set`` tells.
    """

    positions: Tensor  # (H, K): the slots carried into the block, then the block's own tokens
    leaves_at: Tensor  # (H, K): the first query that cannot see the slot, or NEVER
    gone_at: Tensor  # (H, K): the first step after which the slot holds nothing that counts, or NEVER
    freed_at: Tensor  # (H, K): the first step after which it takes no memory; later where a window closed over it
    survivors: Tensor | None  # (H, n) indices into K of the slots left after the block; None = all
    first_unseen: int = NEVER  # the first query that cannot see a slot it might have seen, or NEVER
    quantisation: BlockQuantisation | None = None

    @property
    def one_set(self) -> bool:
        """Whether all heads hold the same tokens by construction."""
        return self.positions.stride(0) == 0

    def sees_all(self, last: int) -> bool:
        """Whether every query up to position ``last`` sees all that came before it and was carried into the block."""
        return last < self.first_unseen

    def present(self, queries: Tensor, last: int) -> Tensor:
        """Which slots each query (R,) may attend to before any pattern hides some, (H, R, K) bool.

        ``last`` is the last query's position, known without asking the device.
        """
        heads, slots = self.positions.shape
        if self.sees_all(last):  # what was carried, and the block's own tokens up to the query's
            whole = torch.ones(len(queries), slots, dtype=torch.bool, device=queries.device)
            return whole.tril(slots - len(queries)).expand(heads, -1, -1)
        rows, own = queries[:, None], slice(0, 1) if self.one_set else slice(None)
        positions, leaves_at = self.positions[own, None], self.leaves_at[own, None]
        return ((positions <= rows) & (rows < leaves_at)).expand(heads, -1, -1)


def by_schedule(schedules: list[LayerSchedule]) -> dict[LayerSchedule, list[int]]:
    """The layers of each schedule; those that are alike share one."""
    found: dict[LayerSchedule, list[int]] = {}
    for layer, schedule in enumerate(schedules):
        found.setdefault(schedule, []).append(layer)
    return found


@dataclass(frozen=True)
class RunContext:
    """What every eviction knows of the run."""

    layers: int
    kv_heads: int
    prompt_tokens: int
    device: torch.device
    storage: Storage = field(default_factory=Native)

    def quantiser(self, *shape: int) -> Quantiser | None:
        """Who follows what is quantised; None where nothing ever is."""
        return open_quantiser(self.storage, shape, self.device)

    def moment(self, newest: int, layer: int) -> Moment:
        return Moment(newest, layer, self.layers, self.prompt_tokens)

    def view(
        self, positions: Tensor, newest: int, layer: Tensor, head: Tensor, limit: int, statistics: dict[str, Tensor]
    ) -> View:
        """What a policy is shown."""
        return View(positions, newest, layer, head, self.layers, self.prompt_tokens, limit, statistics)


class BlockRows(Protocol):
    """What an eviction may ask of a block of rows in one layer; ``run.block`` has it."""

    key: Tensor  # (1, H, K, D) of all slots, as they are stored

    @property
    def keys(self) -> Tensor:
        """Of the block's own tokens, (H, R, D)."""

    @property
    def values(self) -> Tensor:
        """Of the block's own tokens, (H, R, D)."""

    def open_weights(self) -> None:
        """The rows will be weighed part by part."""

    def weigh(self, part: slice, positions: Tensor, present: Tensor) -> Tensor:
        """Weights (H, G, r, K) of some rows over the slots at ``positions`` (H, K), ``present`` or not (H, r, K).

        They are kept for the block's output.
        """

    def replace_keys(self, heads: Tensor, slots: Tensor, keys: Tensor, row: int) -> None:
        """From ``row`` on the keys of these (e,) heads and (e, n) slots are seen as ``keys`` (e, n, D)."""


class Eviction(Protocol):
    """Who leaves when, in all layers of a run: by what an entry is, or by the attention it receives."""

    def begin(self, start: int, rows: int) -> None:
        """A block of ``rows`` tokens begins at position ``start``, in every layer."""

    def decide(self, layer: int, rows: BlockRows) -> LayerSchedule:
        """What happens in this layer during the block; each layer is asked once a block, in order."""

"""What a policy asked to be carried beside the slots: one mapping, taken when an entry enters, renewed by attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from kvviz.policies import Policy


def length(states: Tensor) -> Tensor:
    """‖x‖ of every entry in at least float32, (H, R, D) → (H, R): norms taken in bfloat16 tie."""
    return torch.linalg.vector_norm(states, dim=-1, dtype=torch.promote_types(states.dtype, torch.float32))


def numbers(states: Tensor) -> Tensor:
    """The entries themselves in at least float32, the slots along the last axis, (H, R, D) → (H, D, R)."""
    return states.to(torch.promote_types(states.dtype, torch.float32)).transpose(1, 2)


# of a key and a value (H, R, D) as they enter, (H, R) or (H, D, R)
AT_ENTRY: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "key_norm": lambda key, value: length(key),
    "value_norm": lambda key, value: length(value),
    "key": lambda key, value: numbers(key),
    "value": lambda key, value: numbers(value),
}


class Statistics:
    """The statistics that a policy needs, by name, the slots along the last axis.

    Inside a block they are kept by slot, dropped ones included, so that an eviction copies no history.
    """

    def __init__(self, policy: Policy) -> None:
        self.names, self.observes = policy.needs, policy.observes
        self.values: dict[str, Tensor] = {}
        unknown = set(self.names) - {*AT_ENTRY, "received", "rows"}
        if unknown:
            raise TypeError(f"{policy.name()} needs {sorted(unknown)}, which is not measured.")

    def enter(self, keys: Tensor, values: Tensor) -> None:
        """A block's new entries, (H, R, D) each; they have received nothing yet."""
        heads, rows, _ = keys.shape
        wide = torch.promote_types(keys.dtype, torch.float32)
        for name in self.names:
            if name == "rows":  # and room for the block's own rows
                before = self.values.get(name, keys.new_zeros(heads, self.observes, 0, dtype=wide))
                self.values[name] = F.pad(before, (0, rows, 0, rows))
            elif name == "received":
                self.values[name] = F.pad(self.values.get(name, keys.new_zeros(heads, 0, dtype=wide)), (0, rows))
            else:
                new = AT_ENTRY[name](keys, values)
                self.values[name] = torch.cat([self.values[name], new], -1) if name in self.values else new

    def attended(self, part: slice, weights: Tensor) -> None:
        """Some rows of the block have attended: weights (H, G, r, K), of which a KV head's score is the mean over G."""
        shared = weights.mean(1)
        if "received" in self.values:
            self.values["received"] += shared.sum(1)
        if "rows" in self.values:
            self.values["rows"][:, part.start + self.observes : part.stop + self.observes] = shared

    def seen(self, row: int = 0, known: int = 0, slots: Tensor | None = None) -> dict[str, Tensor]:
        """All of them before row ``row`` of the block, ``known`` rows of attention; of some ``slots`` (…, n) or of all.

        ``row`` is the first row whose attention is not known yet.
        """
        end, count = row + self.observes, min(self.observes, known)
        found = {n: v[:, end - count : end] if n == "rows" else v for n, v in self.values.items()}
        return found if slots is None else {name: gathered(value, slots) for name, value in found.items()}

    def carry(self, survivors: Tensor | None, rows: int) -> None:
        """The block has ended: keep what belongs to the slots that survive, (H, n), and the latest rows."""
        if "rows" in self.values:
            self.values["rows"] = self.values["rows"][:, rows:]
        if survivors is not None:
            self.values = {name: gathered(value, survivors) for name, value in self.values.items()}


def gathered(value: Tensor, slots: Tensor) -> Tensor:
    """``value`` (H, K) or (H, n, K) at ``slots`` (…, m), along its last axis; a leading axis of one layer is kept."""
    if value.ndim == 3:
        slots = slots[..., None, :].expand(*slots.shape[:-1], value.shape[1], -1)
    return value.expand(*slots.shape[:-1], -1).gather(-1, slots)

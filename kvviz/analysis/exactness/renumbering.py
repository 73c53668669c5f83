"""Positions after eviction: kept as they were, renumbered with the keys rotated along, or renumbered without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.exactness.masks import Losses
from kvviz.choices.setup import Setup
from kvviz.policies.streaming import Streaming
from kvviz.run.reading import Reading
from kvviz.run.replay import replay, token_losses
from kvviz.run.rotation import ropes_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Slots:
    """What the cache of sinks and a window holds after one step, slot by slot (n,)."""

    positions: Ints  # in the text
    distances: dict[str, Ints]  # by way of numbering: query position − key position, as the rotation has it
    turns: Ints  # positions that each key is moved by where it is renumbered rightly; never above 0
    angles: NDArray[np.float64]  # (n, F) radians, of each pair of channels, not reduced to one turn


def losses_by_numbering(
    model: PreTrainedModel,
    ids: Tensor,
    policy: Streaming,
    *,
    progress: Callable[[float], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> dict[str, Losses]:
    """What every token costs under each of the three, (T − 1,) nats. ValueError where slots mean nothing to a model."""
    setup, texts = Setup(policy), ids.tolist()
    found = {}
    for place, name in enumerate(("original", "slot")):

        def tell(share: float, place: int = place) -> None:
            if progress is not None:
                progress((place + share) / 3)

        run = replay(model, texts, replace(setup, positions=name), progress=tell, is_cancelled=is_cancelled)
        found[name] = np.asarray(run.nll, dtype=np.float64)
    found["unrotated"] = token_losses(unrotated_logits(model, ids, policy), ids[1:]).cpu().numpy()
    return found


def unrotated_logits(model: PreTrainedModel, ids: Tensor, policy: Streaming) -> Tensor:
    """The mistake: a token's position is the number of entries held, and keys stay as they were rotated, (T, V).

    Once the cache is full every new token gets the same position, B − 1.
    """
    places = torch.arange(len(ids), device=ids.device)
    visible = kept_mask(len(ids), policy).to(ids.device)
    return Reading(model).read(ids, positions=places.clamp(max=policy.budget - 1), visible=visible)


def kept_mask(tokens: int, policy: Streaming) -> Tensor:
    """(T, T) bool: row t sees the sinks and the latest B − sinks tokens, its own among them."""
    keys = torch.arange(tokens)
    age = keys[:, None] - keys
    return (age >= 0) & ((age < policy.budget - policy.sinks) | (keys < policy.sinks))


def slots_at(model: PreTrainedModel, policy: Streaming, step: int, layer: int) -> Slots:
    """The slots after token ``step`` was read, and how each numbering places them; angles are those of one layer."""
    held = np.flatnonzero(kept_mask(step + 1, policy)[-1].numpy())
    slots, full = np.arange(len(held)), policy.budget - 1
    distances = {
        "original": step - held,
        "slot": len(held) - 1 - slots,
        "unrotated": min(step, full) - np.minimum(held, full),
    }
    turns = slots - held
    frequencies = ropes_of(model)[layer].inv_freq.cpu().numpy()
    return Slots(held, distances, turns, turns[:, None] * frequencies)

"""Gradients through a run: the stock model once more, with exactly the attention that a trace had, differentiably.

The forward is the model's own; only its attention is replaced, through the same registered function as in a replay, by
plain operations under the masks of the trace. Then one sweep goes down the layers and carries a gradient for every
depth asked for: at each layer the graph of that layer alone is built, used and dropped, so memory is that of one layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.layer_calls import Call, layer_calls, lengths, sublayers
from kvviz.analysis.masks import TraceMasks
from kvviz.measures.influence import Floats, hop, mixing, shares
from kvviz.models.threads import CorePool
from kvviz.run import attention
from kvviz.run.attention import Rule
from kvviz.run.progress import Progress, Watch
from kvviz.run.trace import Trace


@dataclass(frozen=True, eq=False)
class Influence:
    """What token ``query`` depends on after each of D depths (layers passed), over T = query + 1 positions.

    L is the largest of the depths.
    """

    query: int
    depths: tuple[int, ...]
    gradient: Floats  # (D, T) share of every input position; a row sums to 1
    rollout: Floats  # (D, T) the same by attention alone
    levels: Floats  # (D, L + 1, T) share of every position of every level up to the depth; NaN above
    came_from: NDArray[np.integer]  # (D, L, T) the strongest path: who reads each position of a level; see ``relay``
    strength: Floats  # (D, T) log of the product of weights along the strongest path from each input position
    sublayers: dict[str, Floats]  # in the deepest layer: what each part of it takes from which position, (T,) shares

    @property
    def bytes(self) -> int:
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))


class MaskedRun:
    """Attention under the masks of a trace in plain operations; remembers the weights of the layer it saw last."""

    def __init__(self, masks: TraceMasks, softmax: str):
        self.masks, self.softmax = masks, softmax
        self.weights: Tensor | None = None  # (A, T, T)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, rule: Rule, window: int | None) -> Tensor:
        shift = self.masks.shift(layer)
        if shift is None:
            raw = attention.scores(query, key, rule)
        else:
            raw = attention.slot_scores(query, key, rule, shift, self.masks.ropes[layer])
        weights = attention.weights_of(raw, self.masks.visible(layer), rule)
        self.weights = weights.detach().flatten(0, 1)
        return attention.combine(weights, value)


def influence(
    model: PreTrainedModel,
    trace: Trace,
    query: int,
    depths: Sequence[int] | None = None,
    *,
    progress: Progress | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Influence:
    """The influence of every input position on token ``query`` after each of ``depths`` layers (default: all).

    Raises ValueError for a query or depth that does not exist, Cancelled when ``is_cancelled`` answers yes.
    """
    depths = checked(trace, query, depths)
    masks = TraceMasks(model, trace, query)
    run = MaskedRun(masks, trace.setup.softmax)
    with attention.routed(model, run):
        calls = layer_calls(model, trace.token_ids[masks.first : query + 1], max(depths))
        sweep = Sweep(run, calls, depths, LayerWatch(sum(depths), progress, is_cancelled))
        with CorePool(model.device) as pool:
            for level in range(max(depths), 0, -1):
                sweep.descend(level, pool)
        parts = sublayers(calls[max(depths) - 1])
    return sweep.found(query, masks.first, parts)


def checked(trace: Trace, query: int, depths: Sequence[int] | None) -> tuple[int, ...]:
    depths = tuple(depths) if depths is not None else tuple(range(1, trace.layers + 1))
    if not 0 <= query < trace.tokens:
        raise ValueError(f"There is no query {query}; choose a position from 0 to {trace.tokens - 1}.")
    if not depths or not all(1 <= depth <= trace.layers for depth in depths):
        raise ValueError(f"The depths {list(depths)} must be numbers of layers from 1 to {trace.layers}.")
    return tuple(sorted(set(depths)))


def hidden_states(model: PreTrainedModel, trace: Trace) -> list[Tensor]:
    """The hidden states that the gradients are taken of: the input and the output of every layer, (T, width) each."""
    masks = TraceMasks(model, trace, trace.tokens - 1)
    with attention.routed(model, MaskedRun(masks, trace.setup.softmax)):
        calls = layer_calls(model, trace.token_ids[masks.first :], trace.layers)
        last = calls[-1].again()[1].detach()
    return [call.hidden[0] for call in calls] + [last[0]]


class LayerWatch(Watch):
    """Counts the layer gradients done."""

    def __init__(self, total: int, progress: Progress | None, is_cancelled: Callable[[], bool] | None) -> None:
        super().__init__(progress, is_cancelled)
        self.total, self.done = total, 0

    def one_more(self) -> None:
        self.done += 1
        self.tell(self.done / self.total)


class Sweep:
    """Down the layers with one gradient, one rollout row and one strongest path for every depth passed so far."""

    def __init__(self, run: MaskedRun, calls: list[Call], depths: tuple[int, ...], watch: LayerWatch):
        self.run, self.calls, self.depths, self.watch = run, calls, depths, watch
        self.tokens = calls[0].hidden.shape[1]
        self.gradients: dict[int, Tensor] = {}  # depth → (1, T, width)
        self.rollouts: dict[int, Tensor] = {}  # depth → (T,)
        self.strengths: dict[int, Tensor] = {}  # depth → (T,) logs
        shape = (len(depths), max(depths), self.tokens)
        self.norms = np.full((shape[0], shape[1] + 1, shape[2]), np.nan)
        self.came_from = np.zeros(shape, dtype=np.int32)

    def descend(self, level: int, pool: CorePool) -> None:
        """From the level after layer ``level`` to the one before it."""
        leaf, output = self.calls[level - 1].again()
        assert self.run.weights is not None
        mix = mixing(self.run.weights)
        logs = mix.log()
        if level in self.depths:
            self.begin(level, output.detach(), mix)

        def hopped(depth: int) -> tuple[Tensor, ...]:
            (gradient,) = torch.autograd.grad(output, leaf, self.gradients[depth], retain_graph=True)
            return gradient, self.rollouts[depth] @ mix, *hop(self.strengths[depth], logs)

        depths = list(self.gradients)
        for depth, (gradient, rollout, strength, origin) in zip(depths, pool.map(hopped, depths), strict=True):
            self.gradients[depth], self.rollouts[depth], self.strengths[depth] = gradient, rollout, strength
            self.note(depth, level - 1)
            self.came_from[self.depths.index(depth), level - 1] = origin.cpu().numpy()
            self.watch.one_more()

    def begin(self, depth: int, output: Tensor, mix: Tensor) -> None:
        """The gradient of ½‖h‖² by h is h itself, at the query alone, which is the last position."""
        self.gradients[depth] = torch.zeros_like(output)
        self.gradients[depth][:, -1] = output[:, -1]
        self.rollouts[depth] = torch.zeros_like(mix[0])
        self.rollouts[depth][-1] = 1
        self.strengths[depth] = self.rollouts[depth].log()
        self.note(depth, depth)

    def note(self, depth: int, level: int) -> None:
        self.norms[self.depths.index(depth), level] = lengths(self.gradients[depth]).cpu().numpy()

    def found(self, query: int, first: int, parts: dict[str, Tensor]) -> Influence:
        """All of it as shares over the whole text up to the query; what a fresh window left out is 0."""
        levels = shares(torch.from_numpy(self.norms)).numpy()
        rollout = torch.stack([self.rollouts[depth] for depth in self.depths]).cpu().numpy()
        strength = torch.stack([self.strengths[depth] for depth in self.depths]).cpu().numpy()
        levels = padded(levels, first)
        return Influence(
            query=query,
            depths=self.depths,
            gradient=levels[:, 0],
            rollout=padded(rollout, first),
            levels=levels,
            came_from=padded(self.came_from + first, first),
            strength=padded(strength, first, -np.inf),
            sublayers={name: padded(shares(part).cpu().numpy(), first) for name, part in parts.items()},
        )


def padded(values: NDArray[Any], first: int, fill: float = 0.0) -> NDArray[Any]:
    """The positions before ``first``, along the last axis."""
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(first, 0)], constant_values=fill)

"""A reading in which everything that reuse depends on is in the caller's hand: entries, positions, mask.

``Pass`` keeps positions and masks right by itself. What happens when they are wrong is shown with this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.cache.slots import SlotsLayer, native_windows, slots_cache
from kvviz.cache.stores import NativeStore
from kvviz.choices.storage import Native
from kvviz.models.rope import turning_lengths
from kvviz.run import attention
from kvviz.run.attention import Rule
from kvviz.run.refusals import learned_positions, refuse_beyond_learned, refuse_unseen_layers, trained_positions


@dataclass(frozen=True, eq=False)
class Attended:
    """What one layer's attention was given: query (1, A, R, D), key and value (1, H, K, D), visible (R, K) bool."""

    query: Tensor
    key: Tensor
    value: Tensor
    visible: Tensor
    rule: Rule


Watcher = Callable[[int, Attended], None]  # told of every layer as it attends


class Reading:
    """Tokens read over the entries held so far, at the positions and under the mask that the caller gives.

    All heads of a layer see the same; a layer's own sliding window hides further keys, and nothing is evicted. Raises
    ValueError for a model whose frequencies would change with the length of the text, or that has no such positions.
    """

    softmax = "standard"

    def __init__(self, model: PreTrainedModel, layers: int | None = None) -> None:
        """``layers``: only the first ones are there, where the caller has shortened the model (``first_layers``)."""
        self.model, self.device = model, model.device
        self.windows = native_windows(model.config)[:layers]
        self.layers = [SlotsLayer(Native(), model.device) for _ in self.windows]
        self.entered = torch.empty(0, dtype=torch.long, device=model.device)  # (K,) the order in which entries came
        self.watcher: Watcher | None = None
        self.fed = 0

    @property
    def held(self) -> int:
        """Entries of each head."""
        return len(self.entered)

    def read(
        self,
        token_ids: Sequence[int] | Tensor,
        *,
        positions: Tensor | None = None,
        visible: Tensor | None = None,
        order: Tensor | None = None,
    ) -> Tensor:
        """Logits (R, vocabulary) of R further tokens, whose entries are then held too.

        Without ``positions`` (R,) they follow on those read before; without ``visible`` (R, held + R) bool every row
        sees what is held and its own block up to itself. ``order`` (R,) counts tokens for windows of the model's own:
        the branches of a tree stand side by side.
        """
        ids = torch.as_tensor(token_ids, device=self.device).view(-1)
        if order is None:
            order = torch.arange(self.fed, self.fed + len(ids), device=self.device)
        places = order if positions is None else positions
        refuse_places(self.model, int(places.max()) + 1)
        self.entered = torch.cat([self.entered, order])
        causal = self.entered[None] <= order[:, None]
        self.visible, self.order = causal if visible is None else visible, order
        self.seen_layers = 0
        with attention.routed(self.model, self), torch.inference_mode():
            cache = slots_cache(self.layers)
            logits: Tensor = self.model(
                input_ids=ids[None], position_ids=places[None], cache=cache, use_cache=True
            ).logits[0]
        refuse_unseen_layers(self.model, self.seen_layers, len(self.windows))
        self.fed += len(ids)
        return logits

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, rule: Rule, window: int | None) -> Tensor:
        """One layer's attention, (1, R, A, D)."""
        self.seen_layers += 1
        visible = self.visible
        if window is not None:
            visible = visible & (self.order[:, None] - self.entered[None] < window)
        if self.watcher is not None:
            self.watcher(layer, Attended(query, key, value, visible, rule))
        if rule.is_plain:
            return attention.fused(query, key, value, visible[None], rule, is_causal=False)
        weights = attention.weights_of(attention.scores(query, key, rule), visible[None], rule)
        return attention.combine(weights, value)

    def copy(self) -> Reading:
        """Another reading that goes on from the same entries."""
        return self.first_layers(len(self.layers))

    def first_layers(self, count: int) -> Reading:
        """A copy of the first layers alone."""
        other = Reading(self.model, count)
        other.entered, other.fed = self.entered, self.fed
        for layer, (keys, values) in zip(other.layers, self.entries()[:count], strict=bool(self.held)):
            layer.update(keys.clone(), values.clone())
        return other

    def entries(self) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of each layer, (1, H, K, D); views that change when more is read."""
        found = [layer.store.entries for layer in self.layers if isinstance(layer.store, NativeStore)]
        return [pair for pair in found if pair is not None]

    @torch.inference_mode()
    def hold(self, layers: list[tuple[Tensor, Tensor]]) -> None:
        """Begin with keys and values (1, H, K, D) of every layer, computed elsewhere for the first K tokens."""
        for layer, (keys, values) in zip(self.layers, layers, strict=True):
            layer.update(keys, values)
        self.fed = layers[0][0].shape[2]
        self.entered = torch.arange(self.fed, device=self.device)

    @torch.inference_mode()
    def to(self, dtype: torch.dtype) -> None:
        """Hold the entries in another number format."""
        for layer, (keys, values) in zip(self.layers, self.entries(), strict=True):
            assert isinstance(layer.store, NativeStore)
            layer.store.entries = keys.to(dtype), values.to(dtype)

    def remove(self, place: int) -> None:
        """Drop one entry of every head: those left keep their positions."""
        left = torch.arange(self.held, device=self.device) != place
        self.keep(left.nonzero()[:, 0])

    @torch.inference_mode()
    def keep(self, slots: Tensor) -> None:
        """Keep only these slots (n,), ascending, in every head: those left keep their positions."""
        self.entered = self.entered[slots]
        for layer in self.layers:
            layer.retain(slots.expand(layer.heads, -1))

    @torch.inference_mode()
    def zero(self, place: int) -> None:
        """Set one entry's value to 0 in every head; its key stays and takes weight."""
        for _, values in self.entries():
            values[:, :, place] = 0


def refuse_places(model: PreTrainedModel, positions: int) -> None:
    """ValueError where so many positions mean something else to the model, or nothing."""
    refuse_beyond_learned(model, learned_positions(model), positions)
    trained = trained_positions(model)
    if trained is not None and positions > trained:
        raise ValueError(
            f"{positions} positions are more than the {trained} that this {model.config.model_type} model was trained "
            "on; choose fewer tokens, or a smaller shift."
        )
    turn = min((length for length, _ in turning_lengths(model)), default=positions)
    if positions > turn:
        raise ValueError(
            f"The rotary frequencies of this {model.config.model_type} model change after {turn} tokens, so a cache of "
            f"{positions} is not that of one pass; choose at most {turn} tokens."
        )

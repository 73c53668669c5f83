"""How each layer of a model really rotates its keys, found by moving a whole text and looking at what becomes of them.

Attention with rotary positions knows distances alone: the same tokens at later positions have the same hidden states,
and every key is the old one, rotated. A config may leave layers out, rotate some channels or pair them in another way;
so each known way is tried on the keys, and a model whose keys no way explains is refused.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from kvviz.models.rope import Rope, candidates_of
from kvviz.run import attention
from kvviz.run.attention import Rule

TOKENS, SHIFT = 4, 3
# a wrong way leaves errors of about 1; the numbers of half precision add up over the layers
LARGEST_ERROR = {torch.float64: 1e-6, torch.float32: 1e-3}
IN_HALF_PRECISION = 0.2

_known: WeakKeyDictionary[PreTrainedModel, tuple[Rope, ...]] = WeakKeyDictionary()


class KeyProbe:
    """A run that keeps the keys as the layers hand them over, and attends as the stock model does."""

    softmax = "standard"

    def __init__(self) -> None:
        self.keys: list[Tensor] = []  # a layer each, (1, H, T, D)
        self.lengths: list[Tensor] = []  # of the queries, (1, A, T)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, rule: Rule, window: int | None) -> Tensor:
        self.keys.append(key)
        self.lengths.append(query.norm(dim=-1))
        rows = torch.arange(key.shape[2], device=key.device)
        age = rows[:, None] - rows
        visible = (age >= 0) & (age < (window or len(rows)))
        weights = attention.weights_of(attention.scores(query, key, rule), visible[None], rule)
        return attention.combine(weights, value)


def ropes_of(model: PreTrainedModel) -> list[Rope]:
    """The Rope of every layer, found once a model; ValueError with the reason where slot positions have no meaning."""
    if model not in _known:
        _known[model] = found_ropes(model)
    return list(_known[model])


def found_ropes(model: PreTrainedModel) -> tuple[Rope, ...]:
    candidates_of(model, 0, 0)  # refuses before anything is run
    before, after, far = (probed(model, first) for first in (0, SHIFT, farthest(model)))
    pairs = zip(before.keys, after.keys, strict=True)
    ropes = tuple(rope_of(model, layer, *keys) for layer, keys in enumerate(pairs))
    if not torch.allclose(far.lengths[0], before.lengths[0], rtol=0.02):
        raise ValueError(
            f"positions=slot is refused for {model.config.model_type}: it scales its queries by their position, so a "
            "text that is renumbered is not the same text. Choose positions=original."
        )
    if not any(len(rope.inv_freq) for rope in ropes):
        raise ValueError(f"positions=slot means nothing to {model.config.model_type}: its keys carry no position.")
    return ropes


def farthest(model: PreTrainedModel) -> int:
    """A position near the end of those that the model was trained on."""
    trained = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    return max(0, (trained or 2048) - TOKENS)


def probed(model: PreTrainedModel, first: int) -> KeyProbe:
    """What the layers hand over with the first token at position ``first``."""
    vocabulary = model.config.get_text_config(decoder=True).vocab_size
    ids = torch.linspace(0.2, 0.8, TOKENS, device=model.device).mul(vocabulary).long()
    probe = KeyProbe()
    with torch.inference_mode(), attention.routed(model, probe):
        model(
            input_ids=ids[None],
            position_ids=torch.arange(first, first + TOKENS, device=model.device)[None],
            cache=DynamicCache(config=model.config),
            use_cache=True,
        )
    return probe


def rope_of(model: PreTrainedModel, layer: int, before: Tensor, after: Tensor) -> Rope:
    """The way that explains these keys of one layer; ValueError if none does."""
    shift = torch.full(before.shape[:-1], SHIFT, device=before.device)
    errors = []
    for rope in candidates_of(model, layer, before.shape[-1]):
        wide = torch.promote_types(before.dtype, torch.float32)
        gap = (rope.moved(before, shift) - after.to(wide)).norm() / after.to(wide).norm().clamp(min=1e-30)
        errors.append((float(gap), rope))
    error, best = min(errors, key=lambda pair: pair[0])
    if not error <= LARGEST_ERROR.get(before.dtype, IN_HALF_PRECISION):
        raise ValueError(
            f"positions=slot is refused for {model.config.model_type}: moving a text by {SHIFT} positions changes the "
            f"keys of layer {layer} in a way that no rotation kvviz knows explains (the nearest leaves an error of "
            f"{error:.2g}). Choose positions=original."
        )
    return best

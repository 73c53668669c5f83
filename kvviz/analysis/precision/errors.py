"""The error that coded keys and values bring into every layer and head: keys, scores, weights, output.

Each layer is asked about its own exact inputs, so that what one layer does wrong is not counted in the next; the loss,
in which all of it adds up, is measured apart. Which entries a query sees coded follows the storage's own rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.cache.quantise import decode_keys, decode_values, encode_keys, encode_values
from kvviz.choices.storage import Quantised
from kvviz.run import attention
from kvviz.run.progress import Cancelled
from kvviz.run.reading import Attended, Reading

Floats = NDArray[np.float64]
QUERIES = 64  # the last ones of the text, over which errors are means
GROUPINGS = ("channel", "token")  # what shares a scale among keys: one channel of several keys, or one key's channels


@dataclass(frozen=True, eq=False)
class Errors:
    """What one storage does to every layer, of keys and values that some query sees coded.

    ``keys`` and ``values`` (L, H): ‖x′ − x‖ / ‖x‖ of all coded entries of a head. ``scores`` (L, A): root mean square
    of the difference before softmax. ``weights`` (L, A): ½ Σ |w′ − w|, the share of the attention that falls elsewhere.
    ``output`` (L, A): ‖o′ − o‖ / ‖o‖, values coded too. Means over the queries. ``channels`` (L, H, D): root mean
    square error of each channel of the keys.
    """

    keys: Floats
    values: Floats
    scores: Floats
    weights: Floats
    output: Floats
    channels: Floats

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in vars(self).values())


@dataclass(frozen=True, eq=False)
class Layers:
    """All that was asked of one text."""

    errors: dict[tuple[str, str], Errors]  # by storage's name and grouping of the keys
    sizes: Floats  # (L, H, D): mean absolute value of each channel of the keys
    coded: int  # keys that the last query sees coded

    @property
    def nbytes(self) -> int:
        return self.sizes.nbytes + sum(one.nbytes for one in self.errors.values())


def layer_errors(
    model: PreTrainedModel,
    ids: Tensor,
    storages: Sequence[Quantised],
    *,
    progress: Callable[[float], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Layers:
    """Every storage, with keys grouped both ways, on one text (T,). All share group and residual.

    Raises ValueError where no query sees a coded key, and for models whose layers slide.
    """
    check_text(model, len(ids), storages[0])
    found: dict[tuple[str, str], list[list[Tensor]]] = {(s.name(), way): [] for s in storages for way in GROUPINGS}
    sizes: list[Tensor] = []
    reading = Reading(model)

    def watch(layer: int, given: Attended) -> None:
        if is_cancelled is not None and is_cancelled():
            raise Cancelled
        if progress is not None:
            progress(layer / len(reading.layers))
        layer_inputs = Inputs(given, storages[0].residual)
        sizes.append(given.key[0].abs().double().mean(1))
        for storage in storages:
            for way in GROUPINGS:
                found[storage.name(), way].append(layer_inputs.errors(storage, way))

    reading.watcher = watch
    reading.read(ids)
    errors = {key: Errors(*map(stacked, zip(*rows, strict=True))) for key, rows in found.items()}
    residual = storages[0].residual
    return Layers(errors, stacked(sizes), (len(ids) - 1) // residual * residual)


def check_text(model: PreTrainedModel, tokens: int, storage: Quantised) -> None:
    """ValueError where nothing would be coded before the last query, or keys leave by the model's own rule."""
    if tokens <= storage.residual:
        raise ValueError(
            f"Of {tokens} tokens none is read with coded keys: the latest {storage.residual} stay exact; choose a "
            f"smaller residual or at least {storage.residual + 1} tokens."
        )
    if any(window is not None for window in Reading(model).windows):
        raise ValueError(
            f"The errors of this {model.config.model_type} model are not shown: some of its layers slide, so that "
            "blocks of keys lose entries, which was not checked; choose a model whose layers all see everything."
        )


def stacked(parts: Sequence[Tensor]) -> Floats:
    found: Floats = torch.stack(list(parts)).cpu().numpy().astype(np.float64)
    return found


class Inputs:
    """One layer's exact inputs, and what its last queries make of them."""

    def __init__(self, given: Attended, residual: int) -> None:
        self.rule, self.key, self.value = given.rule, given.key, given.value
        tokens = self.key.shape[2]
        rows = min(QUERIES, tokens - residual)  # those before see no coded key
        self.query, self.visible = given.query[:, :, -rows:], given.visible[None, -rows:]
        queries = torch.arange(tokens - rows, tokens, device=self.key.device)
        places = torch.arange(tokens, device=self.key.device)
        # a query sees coded what was coded after the step before it
        self.key_coded = places < (queries // residual * residual)[:, None]
        self.value_coded = places < (queries - residual)[:, None]
        self.scores = attention.scores(self.query, self.key, self.rule)
        self.weights = attention.weights_of(self.scores, self.visible, self.rule)
        self.output = attention.combine(self.weights, self.value)[0]  # (R, A, D)

    def errors(self, storage: Quantised, way: str) -> list[Tensor]:
        """In the order of the fields of ``Errors``."""
        keys, count = self.coded_keys(storage, way), int(self.key_coded[-1].sum())
        values = self.coded_values(storage)
        coded = attention.scores(self.query, keys, self.rule)
        scores = torch.where(self.key_coded, coded, self.scores)
        weights = attention.weights_of(scores, self.visible, self.rule)
        exact = attention.combine(weights.masked_fill(self.value_coded, 0), self.value)
        output = (exact + attention.combine(weights.masked_fill(~self.value_coded, 0), values))[0]
        seen = self.visible & self.key_coded
        moved = (scores - self.scores).double().masked_fill(~seen[:, None], 0).square().sum((-1, -2))
        wrong = (keys - self.key)[0, :, :count].double()
        old = int(self.value_coded[-1].sum())
        return [
            share(wrong, self.key[0, :, :count]),
            share((values - self.value)[0, :, :old], self.value[0, :, :old]),
            (moved / seen.sum()).sqrt().flatten(0, 1),
            (weights - self.weights).abs().double().sum(-1).mean(-1).flatten(0, 1) / 2,
            lengths(output - self.output).div(lengths(self.output)).mean(0),
            wrong.square().mean(1).sqrt(),
        ]

    def coded_keys(self, storage: Quantised, way: str) -> Tensor:
        """The keys (1, H, K, D), whole blocks of them coded and brought back."""
        blocks = self.key.shape[2] // storage.group
        cut = blocks * storage.group
        return torch.cat([restored(self.key[:, :, :cut], storage, way), self.key[:, :, cut:]], 2)

    def coded_values(self, storage: Quantised) -> Tensor:
        flat = self.value[0].flatten(0, 1)
        codes = encode_values(flat, storage.bits, storage.group)
        return decode_values(codes, storage.bits, storage.group, flat.shape[1]).view(self.value.shape)


def restored(keys: Tensor, storage: Quantised, way: str) -> Tensor:
    """Whole blocks of keys (1, H, K, D) coded with scales for each channel of a block, or each group of a key."""
    bits, group = storage.bits, storage.group
    if way == "token":
        flat = keys[0].flatten(0, 1)
        return decode_values(encode_values(flat, bits, group), bits, group, flat.shape[1]).view(keys.shape)
    blocks = keys[0].reshape(-1, group, keys.shape[-1])
    return decode_keys(encode_keys(blocks, bits), bits, group).view(keys.shape)


def share(wrong: Tensor, whole: Tensor) -> Tensor:
    """‖wrong‖ / ‖whole‖ of each head, (H, n, D) → (H,)."""
    return wrong.double().flatten(1).norm(dim=1) / whole.double().flatten(1).norm(dim=1).clamp(min=1e-30)


def lengths(vectors: Tensor) -> Tensor:
    return torch.linalg.vector_norm(vectors.double(), dim=-1).clamp(min=1e-30)

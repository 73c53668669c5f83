"""Rotary positions of kept keys: the frequencies a model may use, and how a key is moved to another position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

# Frequencies that change with the length of the text: a key rotated earlier cannot be moved by a single rotation.
LENGTH_DEPENDENT = ("dynamic", "longrope")


@dataclass(frozen=True, eq=False)
class Rope:
    """Inverse frequencies of one layer, (F,) float64 radians per position; 2·F channels from ``start`` on rotate.

    A channel is paired with the one F further on, or ``interleaved`` with its neighbour, as GPT-J does.
    """

    inv_freq: Tensor
    start: int = 0
    interleaved: bool = False

    def moved(self, keys: Tensor, shift: Tensor) -> Tensor:
        """Keys as they would be ``shift`` positions later, in at least float32.

        ``keys`` (…, D) and ``shift`` (…) broadcast. Always start from the key as it was stored: rotating again and
        again drifts (after 1000 steps of −1 in bfloat16 by 40 %).
        """
        keys = keys.to(torch.promote_types(keys.dtype, torch.float32))
        if not len(self.inv_freq):  # a layer without positions
            return keys.expand(*torch.broadcast_shapes(keys.shape[:-1], shift.shape), -1)
        angle = shift[..., None].to(torch.float64) * self.inv_freq.to(shift.device)
        cos, sin = angle.cos().to(keys.dtype), angle.sin().to(keys.dtype)
        before, rotary, after = keys.split(self.parts(keys.shape[-1]), dim=-1)
        first, second = rotary.unflatten(-1, (-1, 2)).unbind(-1) if self.interleaved else rotary.chunk(2, -1)
        turned = first * cos - second * sin, second * cos + first * sin
        mixed = torch.stack(turned, -1).flatten(-2) if self.interleaved else torch.cat(turned, -1)
        rests = (rest.expand(*mixed.shape[:-1], -1) for rest in (before, after))
        return torch.cat((next(rests), mixed, next(rests)), dim=-1)

    def parts(self, width: int) -> list[int]:
        """Channels before the rotary ones, the rotary ones, and those after."""
        rotary = 2 * len(self.inv_freq)
        return [self.start, rotary, width - self.start - rotary]


def candidates_of(model: nn.Module, layer: int, width: int) -> list[Rope]:
    """The ways in which this layer may rotate keys of ``width`` channels, no rotation among them.

    ValueError where the model's frequencies give slot positions no meaning.
    """
    frequencies = frequencies_of(model, layer)
    starts = sorted({0, width - 2 * len(frequencies)})  # a latent attention rotates the last channels
    found = [Rope(frequencies, start, paired) for start in starts if start >= 0 for paired in (False, True)]
    return [*found, Rope(frequencies[:0])]


def frequencies_of(model: nn.Module, layer: int) -> Tensor:
    """One layer's inverse frequencies, (F,) float64; models such as Gemma 3 keep one set per type of layer."""
    config = model.config.get_text_config(decoder=True)  # type: ignore[union-attr,operator]
    rotary = next((m for m in model.modules() if has_frequencies(m)), None)
    if rotary is None:
        raise ValueError(
            f"positions=slot needs rotary frequencies that kvviz can read; {config.model_type} has none (some such "
            "models learn their positions and add them to the hidden state), so a kept key cannot be renumbered. "
            "Choose positions=original."
        )
    layer_types = getattr(config, "layer_types", None)
    layer_type = layer_types[layer] if layer_types else None
    rope_type = getattr(rotary, "rope_type", "default")
    if isinstance(rope_type, dict):
        rope_type = rope_type.get(layer_type, "default")
    if rope_type in LENGTH_DEPENDENT:
        raise ValueError(
            f"positions=slot is refused for {config.model_type}: its {rope_type!r} frequencies change with the text's "
            "length, so a stored key cannot be moved by one rotation. Choose positions=original."
        )
    own = f"{layer_type}_inv_freq"
    found: Tensor = getattr(rotary, own if hasattr(rotary, own) else "inv_freq")
    return found.double()


def has_frequencies(module: nn.Module) -> bool:
    return any(name.endswith("inv_freq") for name, _ in module.named_buffers(recurse=False))


def turning_lengths(model: nn.Module) -> list[tuple[int, bool]]:
    """Lengths of a text beyond which rotary frequencies change, and whether they do with every further token."""
    found = []
    for rotary in filter(has_frequencies, model.modules()):
        rope_type = getattr(rotary, "rope_type", "default")
        config: Any = rotary.config
        parameters = getattr(config, "rope_parameters", None) or {}
        kinds = rope_type if isinstance(rope_type, dict) else {None: rope_type}
        for layer_type, kind in kinds.items():
            own = parameters if layer_type is None else parameters[layer_type]
            if kind == "dynamic":
                found.append((int(config.max_position_embeddings), True))
            elif kind == "longrope":
                found.append((int(own["original_max_position_embeddings"]), False))
    return found


def parts_by_length(turns: list[tuple[int, bool]], start: int, rows: int) -> list[int]:
    """Into how many tokens each to part a block of ``rows`` from position ``start``, so that all of a part meet the
    same frequencies as when the tokens come one at a time; they add up to ``rows``.

    A part ends one token before a turn too: only a text that is shorter makes transformers go back to the frequencies
    it was trained with.
    """
    end = start + rows
    cuts = {end} | {cut for length, _ in turns for cut in (length - 1, length)}
    for length, every_token in turns:
        cuts |= set(range(length, end)) if every_token else set()
    inside = sorted(cut for cut in cuts if start < cut <= end)
    return [cut - before for before, cut in zip([start, *inside], inside, strict=False)]

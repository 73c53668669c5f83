"""Rotary positions of kept keys: which frequencies a layer uses, and how a key is moved to another position."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# Frequencies that change with the length of the text: a key rotated earlier cannot be moved by a single rotation.
LENGTH_DEPENDENT = ("dynamic", "longrope")


@dataclass(frozen=True, eq=False)
class Rope:
    """Inverse frequencies of one layer, (F,) float64 radians per position; the first 2·F channels rotate."""

    inv_freq: Tensor

    def moved(self, keys: Tensor, shift: Tensor) -> Tensor:
        """Keys as they would be ``shift`` positions later, in at least float32.

        ``keys`` (…, D) and ``shift`` (…) broadcast. Always start from the key as it was stored: rotating again and
        again drifts (after 1000 steps of −1 in bfloat16 by 40 %).
        """
        keys = keys.to(torch.promote_types(keys.dtype, torch.float32))
        angle = shift[..., None].to(torch.float64) * self.inv_freq.to(shift.device)
        cos, sin = angle.cos().to(keys.dtype), angle.sin().to(keys.dtype)
        half = len(self.inv_freq)
        first, second, rest = keys[..., :half], keys[..., half : 2 * half], keys[..., 2 * half :]
        rest = rest.expand(*cos.shape[:-1], -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)


def ropes_of(model: nn.Module) -> list[Rope]:
    """The Rope of every layer; ValueError with the reason where slot positions have no meaning."""
    config = model.config.get_text_config(decoder=True)  # type: ignore[union-attr,operator]
    name = config.model_type
    rotary = next((m for m in model.modules() if has_frequencies(m)), None)
    if rotary is None:
        raise ValueError(
            f"positions=slot needs rotary positions; {name} learns its positions and adds them to the hidden state, "
            "so a kept key cannot be renumbered. Choose positions=original."
        )
    layer_types = getattr(config, "layer_types", None) or [None] * config.num_hidden_layers
    ropes = [rope_of_layer(rotary, kind, name) for kind in layer_types]
    check_layout(model, ropes[0])
    return ropes


def has_frequencies(module: nn.Module) -> bool:
    return any(name.endswith("inv_freq") for name, _ in module.named_buffers(recurse=False))


def rope_of_layer(rotary: nn.Module, layer_type: str | None, name: str) -> Rope:
    """One layer's frequencies; models such as Gemma 3 keep one set per type of layer."""
    own = f"{layer_type}_inv_freq"
    rope_type = getattr(rotary, "rope_type", "default")
    if isinstance(rope_type, dict):
        rope_type = rope_type.get(layer_type, "default")
    if rope_type in LENGTH_DEPENDENT:
        raise ValueError(
            f"positions=slot is refused for {name}: its {rope_type!r} frequencies change with the text's length, so a "
            "stored key cannot be moved by one rotation. Choose positions=original."
        )
    return Rope(getattr(rotary, own if hasattr(rotary, own) else "inv_freq").double())


def check_layout(model: nn.Module, rope: Rope) -> None:
    """Refuse a model whose channels are paired otherwise (GPT-J interleaves them), by rotating one vector both ways."""
    module = sys.modules[type(model).__module__]
    apply = getattr(module, "apply_rotary_pos_emb", None)
    width = 2 * len(rope.inv_freq)
    vector = torch.linspace(-1, 1, width, dtype=torch.float64)[None, None, None]
    angle = (3 * rope.inv_freq.cpu()).repeat(2)[None, None]
    mine = rope.moved(vector.to(rope.inv_freq.device), torch.tensor([[[3]]], device=rope.inv_freq.device)).cpu()
    if apply is None or not torch.allclose(apply(vector, vector, angle.cos(), angle.sin())[0], mine, atol=1e-6):
        raise ValueError(
            f"positions=slot is refused for {type(model).__name__}: it pairs the rotary channels in a way kvviz does "
            "not know. Choose positions=original."
        )

"""Patterns: what a query may see at all. A pattern is a rule of the architecture; it hides and never evicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from kvviz import knobs
from kvviz.knobs import BUDGET_LIMIT, Choice, knob


@dataclass(frozen=True)
class Pattern(Choice):
    """Which of the earlier positions a query may see; every query sees itself."""

    kind: ClassVar[str] = "pattern"
    is_alike: ClassVar[bool] = True  # whether every layer and head gets the same pattern

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        """Whether each query position sees each key position; the two broadcast, the answer is bool.

        Causality (key ≤ query) is the engine's business and may be taken for granted here.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Causal(Pattern):
    """Every earlier position: j ≤ t. Source: Vaswani et al. (2017)."""

    title = "Causal: everything before"
    source = "Vaswani et al., Attention Is All You Need, 2017"

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        return torch.ones(torch.broadcast_shapes(query.shape, key.shape), dtype=torch.bool, device=key.device)


@dataclass(frozen=True)
class Sliding(Pattern):
    """The w latest positions, its own included: t − w < j ≤ t. Source: Beltagy et al., Longformer (2020), causal half.

    Longformer's w counts both sides; here w counts the keys a causal query sees.
    """

    title = "Sliding window"
    source = "Beltagy et al., Longformer, 2020"
    window: int = knob(256, "keys a query sees", 1, BUDGET_LIMIT)

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        return query - key < self.window


PATTERNS: dict[str, type[Pattern]] = {cls.name(): cls for cls in (Causal, Sliding)}


def parse_pattern(text: str) -> Pattern:
    """``sliding:window=64`` → the pattern; ValueError with the choices otherwise."""
    return knobs.parse(text, PATTERNS)

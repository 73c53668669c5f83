"""Patterns: what a query may see at all. A pattern is a rule of the architecture; it hides and never evicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kvviz import knobs
from kvviz.knobs import BUDGET_LIMIT, Choice, knob, numbers

if TYPE_CHECKING:
    from torch import Tensor

LONGFORMER = "Beltagy et al., Longformer: The Long-Document Transformer, 2020"


@dataclass(frozen=True)
class Pattern(Choice):
    """Which of the earlier positions a query may see; every query sees itself."""

    kind: ClassVar[str] = "pattern"
    is_alike: ClassVar[bool] = True  # whether every layer gets the same pattern
    hides_nothing: ClassVar[bool] = False  # whether every query sees all before it
    is_by_distance: ClassVar[bool] = True  # whether only the distance between query and key decides

    def sees(self, query: Tensor, key: Tensor, layer: int, head: Tensor) -> Tensor:
        """Whether each query position sees each key position, bool.

        ``query`` (R, 1) and ``key`` (H or 1, 1, K) broadcast, and with ``head`` (H, 1, 1), the numbers of the KV
        heads, where heads differ. Causality (key ≤ query) is the engine's business and may be taken for granted here.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Causal(Pattern):
    """Every earlier position: j ≤ t. Source: Vaswani et al. (2017)."""

    title = "Causal: everything before"
    hides_nothing = True
    source = "Vaswani et al., Attention Is All You Need, 2017"

    def sees(self, query: Tensor, key: Tensor, layer: int, head: Tensor) -> Tensor:
        return (key <= query) | True  # in the shape that both broadcast to


@dataclass(frozen=True)
class Sliding(Pattern):
    """The w latest positions, its own included: t − w < j ≤ t. Source: Beltagy et al., Longformer (2020), causal half.

    Longformer's w counts both sides; here w counts the keys a causal query sees.
    """

    title = "Sliding window"
    source = LONGFORMER
    window: int = knob(256, "keys a query sees", 1, BUDGET_LIMIT)

    def sees(self, query: Tensor, key: Tensor, layer: int, head: Tensor) -> Tensor:
        return query - key < self.window


@dataclass(frozen=True)
class Dilated(Pattern):
    """Every d-th of the latest positions, w of them: j = t − d·k, k = 0 … w − 1.

    A list of dilations gives each KV head its own, in turn. Source: Longformer (2020), its causal half.
    """

    title = "Dilated window: every d-th"
    source = LONGFORMER
    window: int = knob(64, "keys a query sees", 1, BUDGET_LIMIT)
    dilation: tuple[int, ...] = numbers((2,), "distance between them; several with / go by KV head", 1, 4096)

    def sees(self, query: Tensor, key: Tensor, layer: int, head: Tensor) -> Tensor:
        dilation = key.new_tensor(self.dilation)[head % len(self.dilation)]
        dilation = dilation[:1] if len(self.dilation) == 1 else dilation
        distance = query - key
        return (distance % dilation == 0) & (distance < self.window * dilation)


@dataclass(frozen=True)
class Global(Pattern):
    """A sliding window, and chosen positions that see all before them and are seen by all after.

    j sees t when t − w < j, or j ∈ G, or t ∈ G. Source: Longformer (2020), its causal half.
    """

    title = "Global tokens + sliding window"
    is_by_distance = False
    source = LONGFORMER
    window: int = knob(64, "keys a query sees beside the global ones", 1, BUDGET_LIMIT)
    tokens: tuple[int, ...] = numbers((0,), "positions that are global, with /", 0, BUDGET_LIMIT)

    def sees(self, query: Tensor, key: Tensor, layer: int, head: Tensor) -> Tensor:
        import torch

        chosen = key.new_tensor(self.tokens)
        return (query - key < self.window) | torch.isin(key, chosen) | torch.isin(query, chosen)


@dataclass(frozen=True)
class Layered(Pattern):
    """A window of its own in each layer; 0 = the layer sees everything.

    With ``windows`` layer l has the l-th of the list, which starts again when the model has more layers. Without, all
    layers have ``window`` except one full layer in every ``full_every``, the last of each group, as in hybrid models.
    Source: Longformer (2020) for windows by layer, Gemma 2 and 3 (2024, 2025) for hybrids.
    """

    title = "Layered: windows by layer"
    source = LONGFORMER + "; Gemma Team, Gemma 3 Technical Report, 2025"
    is_alike = False
    window: int = knob(64, "keys a query sees in a windowed layer", 1, BUDGET_LIMIT)
    full_every: int = knob(6, "one full layer in every", 1, 512)
    windows: tuple[int, ...] = numbers((), "windows by layer, with /; 0 = full", 0, BUDGET_LIMIT)

    def window_of(self, layer: int) -> int:
        """Keys a query sees in this layer; 0 = all."""
        if self.windows:
            return self.windows[layer % len(self.windows)]
        return 0 if layer % self.full_every == self.full_every - 1 else self.window

    def sees(self, query: Tensor, key: Tensor, layer: int, head: Tensor) -> Tensor:
        return query - key < (self.window_of(layer) or BUDGET_LIMIT * 2)


PATTERNS: dict[str, type[Pattern]] = {cls.name(): cls for cls in (Causal, Sliding, Dilated, Global, Layered)}


def parse_pattern(text: str) -> Pattern:
    """``sliding:window=64`` → the pattern; ValueError with the choices otherwise."""
    return knobs.parse(text, PATTERNS)

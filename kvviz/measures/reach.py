"""How far a token can see through several layers: exact sets by boolean products of masks, and the bounds of papers.

Row t of layer m sees the positions M_m[t]. What token t can depend on after n layers is S_n = e_t · M_n · M_{n−1} ⋯ M_1
as a product of booleans; information travels one hop a layer. *Depth* n = how many layers were passed (1 to L); *level*
m = the hidden states after m layers, level 0 being the input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kvviz.choices.patterns import Dilated, Global, Layered, Pattern, Sliding

Bools = NDArray[np.bool_]
Masks = Callable[[int], Tensor]  # layer → (T, T) bool, the union over the layer's heads
PART = 2**22  # cells of a mask looked at together


@dataclass(frozen=True)
class Bound:
    """At most so many positions, spread over at most such a span, after some layers; None = no limit but the text."""

    positions: int | None
    span: int | None
    formula: str  # with the numbers in it


def cones(masks: Masks, depths: Sequence[int], query: int) -> Bools:
    """(D, max depth + 1, query + 1): which positions at each level can reach the query's hidden state at each depth.

    ``[i, 0]`` is what the query can depend on after ``depths[i]`` layers; levels above the depth hold nothing.
    """
    tokens, top = query + 1, max(depths)
    found = np.zeros((len(depths), top + 1, tokens), dtype=bool)
    starts = np.asarray(depths)
    found[np.arange(len(depths)), starts, query] = True
    for level in range(top, 0, -1):
        mask = masks(level - 1)[:tokens, :tokens]
        rows = torch.from_numpy(found[starts >= level, level]).to(mask.device)
        # a product of 0 and 1 is above 0 exactly where one path exists
        found[starts >= level, level - 1] = ((rows.float() @ mask.float()) > 0).cpu().numpy()
    return found


def reach(pattern: Pattern, layers: int, tokens: int) -> list[Bools]:
    """What the last of ``tokens`` can depend on after 1 … ``layers`` layers of the pattern alone, (T,) bool each.

    A layer's mask is the union over its heads; as many heads are taken as the pattern tells apart.
    """
    heads = torch.arange(len(pattern.dilation) if isinstance(pattern, Dilated) else 1).view(-1, 1, 1)
    start = torch.zeros(tokens, dtype=torch.bool)
    start[-1] = True
    sets = [start]
    for depth in range(1, layers + 1):
        if pattern.is_by_distance:  # distances add up in any order, so the new layer may as well come last
            found = by_distance(pattern, sets[-1], depth - 1, heads)
        elif isinstance(pattern, Global):
            found = by_global_tokens(pattern, sets[-1], depth - 1, heads)
        elif pattern.is_alike:  # one more hop from what the hop before has added
            found = row_by_row(pattern, sets[-1], depth - 1, heads, known=sets[-2] if depth > 1 else None)
        else:
            found = start
            for layer in reversed(range(depth)):
                found = row_by_row(pattern, found, layer, heads)
        sets.append(found)
    return [found.numpy() for found in sets[1:]]


def by_distance(pattern: Pattern, found: Tensor, layer: int, heads: Tensor) -> Tensor:
    """One hop of a pattern that looks at distance alone: the set moved by every distance it sees, T log T steps."""
    tokens = len(found)
    sees = pattern.sees(torch.tensor([[tokens - 1]]), torch.arange(tokens)[None, None], layer, heads)
    steps = sees.flatten(0, -2).any(0)  # whether position i is seen from the last one
    size = 2 * tokens
    # a convolution counts in how many ways a position is hit; whole numbers, so half a count tells them apart
    hits = torch.fft.irfft(torch.fft.rfft(found.double(), size) * torch.fft.rfft(steps.double(), size), size)
    return hits[tokens - 1 : size - 1] > 0.5


def by_global_tokens(pattern: Global, found: Tensor, layer: int, heads: Tensor) -> Tensor:
    """One hop: through the window, to the global positions, and from the latest of those to all before it."""
    near = by_distance(Sliding(window=pattern.window), found, layer, heads)
    places = torch.tensor([position for position in pattern.tokens if position < len(found)], dtype=torch.long)
    last = int(found.nonzero()[-1])
    near[places[places <= last]] = True
    reached = places[found[places]]
    near[: int(reached.max()) + 1 if len(reached) else 0] = True
    return near


def row_by_row(pattern: Pattern, found: Tensor, layer: int, heads: Tensor, known: Tensor | None = None) -> Tensor:
    """One hop of any pattern; rows ``known`` before have nothing to add where all layers are alike."""
    rows = (found if known is None else found & ~known).nonzero()[:, 0]
    result = found.clone()
    for part in rows.split(max(1, PART // (len(found) * len(heads)))) if len(rows) else ():
        keys = torch.arange(int(part[-1]) + 1)
        sees = pattern.sees(part[:, None], keys[None, None], layer, heads) & (keys <= part[:, None])
        result[: len(keys)] |= sees.flatten(0, -2).any(0)
    return result


def span(found: Bools) -> int:
    """Last − first + 1 of the positions in a set."""
    places = np.flatnonzero(found)
    return int(places[-1] - places[0] + 1) if len(places) else 0


def bound(pattern: Pattern, layers: int) -> Bound:
    """What the shape of the pattern allows after so many layers, whatever the text."""
    if isinstance(pattern, Sliding):
        return window_bound(pattern.window, layers)
    if isinstance(pattern, Dilated):
        return dilated_bound(pattern, layers)
    if isinstance(pattern, Layered):
        return layered_bound(pattern, layers)
    if isinstance(pattern, Global):
        near = window_bound(pattern.window, layers)
        return Bound(None, None, f"{near.formula} by the window, plus the global tokens, which every query sees")
    return Bound(None, None, "every position before it, in one hop")


def window_bound(window: int, layers: int, dilation: int = 1) -> Bound:
    """L·(w − 1) + 1 positions, because every layer sees w − 1 beside its own, over a span of L·(w − 1)·d + 1."""
    positions = layers * (window - 1) + 1
    reached = layers * (window - 1) * dilation + 1
    formula = f"{layers} · ({window:,} − 1) + 1 = {positions:,}"
    if dilation > 1:
        formula += f" positions over a span of {layers} · ({window:,} − 1) · {dilation} + 1 = {reached:,}"
    return Bound(positions, reached, formula)


def dilated_bound(pattern: Dilated, layers: int) -> Bound:
    """With a dilation for each head the layer's mask is the union: the span is that of the widest."""
    if len(set(pattern.dilation)) == 1:
        return window_bound(pattern.window, layers, pattern.dilation[0])
    widest = window_bound(pattern.window, layers, max(pattern.dilation))
    assert widest.span is not None
    return Bound(
        widest.span,
        widest.span,
        f"a span of {layers} · ({pattern.window:,} − 1) · {max(pattern.dilation)} + 1 = {widest.span:,}",
    )


def layered_bound(pattern: Layered, layers: int) -> Bound:
    """Every layer adds its own window less one; a full one adds everything."""
    windows = [pattern.window_of(layer) for layer in range(layers)]
    if 0 in windows:
        return Bound(None, None, f"every position before it, through the full layer {windows.index(0)}")
    total = sum(window - 1 for window in windows) + 1
    return Bound(total, total, f"{' + '.join(f'({window:,} − 1)' for window in windows)} + 1 = {total:,}")


def rounded(window: int, layers: int) -> int:
    """L·w, as the papers round it (Mistral 7B: 32 · 4096 = 131,072, "about 131K")."""
    return layers * window

"""PyramidKV: SnapKV with larger budgets in lower layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kvviz.knobs import knob
from kvviz.policies.base import Moment
from kvviz.policies.snapkv import Snapkv


@dataclass(frozen=True)
class Pyramidkv(Snapkv):
    """SnapKV's vote with a budget per layer that falls from the lowest layer to the highest; the mean stays B.

    S_{P−1} of layer l = {j ≥ P − w} ∪ top_{b_l − w}(pool_k(v)_j). With C = B − w: low = C/β, high = 2C − low; when
    high > P − w then high = P − w and low = 2C − high; b_l − w falls linearly from high to low and is rounded by
    largest remainder, so that Σ b_l = L·B exactly.

    Source: Cai et al., PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling (2024).
    Departures: those of ``snapkv``; the rounding (the authors' floors keep up to 8 % more than asked).
    """

    title = "PyramidKV: more in lower layers"
    source = "Cai et al., PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling, 2024"
    beta: int = knob(20, "how much less upper layers keep", 1, 1000)

    def share(self, moment: Moment) -> int:
        return budgets(self.budget, self.observe, self.beta, moment.layers, moment.prompt_tokens)[moment.layer]


@lru_cache(maxsize=64)
def budgets(budget: int, observe: int, beta: int, layers: int, prompt_tokens: int) -> tuple[int, ...]:
    """Prompt entries of every layer, never increasing, in all ``layers`` × ``budget``."""
    room, most = budget - observe, prompt_tokens - observe
    if room >= most:
        return (prompt_tokens,) * layers
    low = room / beta
    high = 2 * room - low
    if high > most:
        low, high = 2 * room - most, most
    exact = [high - (high - low) * layer / (layers - 1) if layers > 1 else room for layer in range(layers)]
    floors = [int(share + 1e-9) for share in exact]
    missing = layers * room - sum(floors)
    # the largest remainders get one more; of equal ones the lower layer
    order = sorted(range(layers), key=lambda layer: (round(floors[layer] - exact[layer], 9), layer))
    return tuple(observe + floors[layer] + (layer in order[:missing]) for layer in range(layers))

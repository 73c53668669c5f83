"""Offloading: older entries lie in CPU memory."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.storage.base import Stored
from kvviz.choices.storage.native import Native
from kvviz.knobs import BUDGET_LIMIT, knob


@dataclass(frozen=True)
class Offload(Native):
    """The latest ``resident`` entries of a head stay on the GPU, older ones lie in CPU memory until a layer needs them.

    Nothing is lost: the numbers are the same. What changes is where the bytes are and how far they travel a step.
    Source: the usual offloading of a cache, e.g. FlexGen (Sheng et al., 2023), by entry instead of by layer.
    """

    title = "Offload: older entries in CPU RAM"
    source = "Sheng et al., FlexGen: High-Throughput Generative Inference of LLMs with a Single GPU, 2023"
    resident: int = knob(64, "latest entries kept on the GPU", 1, BUDGET_LIMIT)

    def notes(self, stored: Stored) -> list[str]:
        """Where the bytes lie."""
        if stored.device == "cpu":
            return ["The model runs on the CPU, where all entries lie already: there is nothing to offload."]
        total, cold = stored.total_bytes, stored.cold_bytes
        return [f"Of {total:,} bytes of cache {cold:,} lie in CPU memory, {total - cold:,} on the GPU."]

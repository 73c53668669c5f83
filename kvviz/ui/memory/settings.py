"""The Memory page's own settings: how they are spelled in a URL, and what they are when nothing is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvviz.choices.linked_text import LINK_TEXT_BYTES, Text, unpack
from kvviz.choices.words import number_parser, one_of
from kvviz.memory.presets import PRESETS, full_name
from kvviz.memory.shape import NUMBER_BYTES

PASTE, UPLOAD, OWN = "paste", "upload", "own"
MOST_TOKENS, MOST_BATCH, MOST_ROOM = 10**9, 10**6, 10**6
MEMORY_DEFAULTS: dict[str, Any] = {
    "mem_model": "meta-llama/Llama-3.1-8B",
    "mem_config": "",  # the pasted or uploaded config.json itself
    "mem_tokens": 131_072,
    "mem_batch": 1,
    "mem_dtype": OWN,  # the model's own number format
    "mem_room": 24,  # GiB of the GPU
    "mem_gpus": 1,
    "mem_parameters": None,  # million; None = as the table says
}
DTYPES = (OWN, *NUMBER_BYTES)


def model_word(word: str) -> str:
    return word if word in (PASTE, UPLOAD) else full_name(word)


def config_word(word: str) -> str:
    """Undo ``packed``."""
    if not word.startswith("z:"):
        raise ValueError("The config in this link is damaged; copy the whole link again, or paste the config.")
    return unpack(word[2:])


MEMORY_LOOKS: dict[str, Callable[[str], Any]] = {
    "mem_model": model_word,
    "mem_config": config_word,
    "mem_tokens": number_parser("mem_tokens", 1, MOST_TOKENS),
    "mem_batch": number_parser("mem_batch", 1, MOST_BATCH),
    "mem_dtype": one_of("number format", DTYPES),
    "mem_room": number_parser("mem_room", 1, MOST_ROOM),
    "mem_gpus": number_parser("mem_gpus", 1, MOST_BATCH),
    "mem_parameters": number_parser("mem_parameters", 0, 10**9),
}
assert set(MEMORY_LOOKS) == set(MEMORY_DEFAULTS) and MEMORY_DEFAULTS["mem_model"] in PRESETS


def memory_words(looks: dict[str, Any]) -> dict[str, str]:
    """The settings that differ from the ordinary ones, as URL parameters, so that other pages' links stay short."""
    changed = {name: looks[name] for name in MEMORY_LOOKS if looks[name] not in (None, MEMORY_DEFAULTS[name])}
    if changed.get("mem_model") == UPLOAD:
        changed["mem_model"] = PASTE  # whoever opens the link has no file to choose
    if changed.get("mem_model") != PASTE:
        changed.pop("mem_config", None)
    words = {name: str(value) for name, value in changed.items() if name != "mem_config"}
    packed = Text(changed.get("mem_config", "")).spell()
    return words | ({"mem_config": packed} if "mem_config" in changed and packed.startswith("z:") else {})


def memory_look(name: str, value: Any) -> Any:
    """A widget's value as the URL holds it: a whole number without its decimal point, else the ordinary value."""
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() else MEMORY_DEFAULTS[name]


def fits_a_link(config: str) -> bool:
    return len(Text(config).spell()) <= LINK_TEXT_BYTES + 2 and Text(config).spell().startswith("z:")

"""``python -m benchmarks.stock_defaults``: write what transformers' config classes take for a field that is absent.

``kvviz.memory`` reads the table; it needs no transformers itself. Run this again when the pinned version changes.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from transformers.cache_utils import get_layer_types_and_kwargs
from transformers.models.auto import modeling_auto as auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from kvviz.memory.stock import READ, TABLE

WRITES_TEXT = (auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
READS_ONLY = (auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, auto.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES)
READS_ONLY += (auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES, auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES)
BESIDE_AN_ENCODER = (auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,)
BESIDE_AN_ENCODER += (auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,)
LONGEST_PERIOD = 12
LENGTHS = (60, 24, 25, 31)  # layers; a habit must hold for all of them


def made(family: str, **fields: Any) -> Any:
    """A config of the class, or None where it refuses the fields."""
    try:
        return CONFIG_MAPPING[family](**fields)
    except Exception:  # each class has its own checks
        return None


def fields_of(family: str) -> dict[str, Any]:
    """The defaults that the calculator reads; what a class derives from other fields is no default."""
    found = CONFIG_MAPPING[family].default_config_fields()
    inner = found.get(
        "attn_config", {"kv_n_heads": getattr(getattr(made(family), "attn_config", None), "kv_n_heads", None)}
    )
    return told({**global_head_dim(family), **inner, **found})


def told(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in sorted(READ & set(found)) if is_told(name, found[name])}


def is_told(name: str, value: Any) -> bool:
    """Whether a default says something: the base class has is_encoder_decoder=false everywhere."""
    return isinstance(value, (int, str, list)) and not (name == "is_encoder_decoder" and value is False)


def global_head_dim(family: str) -> dict[str, Any]:
    """The head size that a class gives all its full layers (Gemma 4)."""
    config = made(family)
    layers = config.to_dict().get("per_layer_config") if config is not None else None
    widths = {tuple(layer.items()) for layer in (layers or {}).values()}
    full = [
        str(place) for place, kind in enumerate(getattr(config, "layer_types", None) or []) if kind == "full_attention"
    ]
    if len(widths) == 1 and [str(int(place)) for place in layers] == full:
        return {"global_head_dim": dict(widths.pop()).get("head_dim")}
    return {}


def ignored(family: str) -> dict[str, list[str]]:
    """Fields that the class overwrites: it takes no head size but its own."""
    config = made(family, head_dim=56)
    is_own = config is not None and config.to_dict().get("head_dim", 56) != 56
    return {"ignores": ["head_dim"]} if is_own else {}


def has_window(family: str) -> bool:
    return "sliding_window" in CONFIG_MAPPING[family].__dataclass_fields__


def kinds_of(family: str, layers: int) -> list[str] | None:
    """The kinds of layers that a config of so many derives, with a window where the class has one."""
    config = made(family, num_hidden_layers=layers, **({"sliding_window": 8} if has_window(family) else {}))
    try:
        kinds = getattr(config, "layer_types", None) or get_layer_types_and_kwargs(config)[0]
    except Exception:  # composite configs, and classes of another shape
        return None
    return kinds if len(kinds) == layers else None


def habit_of(family: str) -> dict[str, Any]:
    """The shortest pattern of kinds that holds for any number of layers, and the last layer's where it is fixed."""
    found = [kinds for layers in LENGTHS if (kinds := kinds_of(family, layers)) is not None]
    if len(found) < 2:
        return {}
    for ends in (0, 1):
        for period in range(1, LONGEST_PERIOD + 1):
            pattern = found[0][:period]
            bodies = [kinds[: len(kinds) - ends] for kinds in found]
            lasts = {kinds[-1] for kinds in found}
            if len(lasts) <= 1 + (not ends) * len(found) and all(
                kinds == [pattern[place % period] for place in range(len(kinds))] for kinds in bodies
            ):
                return {"layers": pattern, "window": has_window(family)} | ({"last": lasts.pop()} if ends else {})
    return {}


def text_family(family: str) -> str | None:
    """The model type of the text part where a composite config says none."""
    part = getattr(made(family), "text_config", None)
    return getattr(part, "model_type", None)


def own_defaults(family: str, text: str) -> dict[str, Any]:
    """What a composite class takes for a field that its text part leaves out, where the part's own class differs."""
    found = told(CONFIG_MAPPING[family].default_config_fields().get("text_config", {}))
    own: dict[str, Any] = {}
    for said in ({}, {"hidden_size": 64, "num_attention_heads": 4}):  # else 128 may be 4096 / 32 by chance
        parts = made(family, text_config={"model_type": text, **said}), made(text, **said)
        if None not in parts:
            mine, plain = getattr(parts[0], "text_config", parts[0]).to_dict(), parts[1].to_dict()
            own |= {name: mine[name] for name in found if name in mine and mine[name] != plain.get(name)}
    return own


def names(mappings: tuple[dict[str, Any], ...]) -> set[str]:
    return {family for mapping in mappings for family in mapping}


def table() -> dict[str, Any]:
    texts = {family: part for family in CONFIG_MAPPING_NAMES if (part := text_family(family)) not in (None, family)}
    shown = names((*WRITES_TEXT, auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES))
    texts = {family: part for family, part in texts.items() if family in shown}
    writers = shown | set(texts.values())
    families = {
        family: {"fields": fields_of(family), **ignored(family), **habit_of(family)}
        for family in sorted(writers & set(CONFIG_MAPPING_NAMES) - set(texts))
    }
    encoders = {family for family in names(READS_ONLY) if family not in writers or family in names(READS_ONLY[:1])}
    encoders = {family for family in encoders if family not in writers or "is_decoder" in made(family).to_dict()}
    others = set(CONFIG_MAPPING_NAMES) - writers
    return {
        "families": families,
        "texts": {name: {"family": text, "fields": own_defaults(name, text)} for name, text in sorted(texts.items())},
        "encoders": sorted(encoders - set(texts) - names(BESIDE_AN_ENCODER)),
        "others": sorted(others - encoders - set(texts) - names(BESIDE_AN_ENCODER)),
        "beside_an_encoder": sorted(names(BESIDE_AN_ENCODER) - set(texts)),
    }


def main() -> int:
    warnings.simplefilter("ignore")
    TABLE.write_text(lines_of(table()), encoding="utf-8")
    return 0


def lines_of(found: dict[str, Any]) -> str:
    """JSON with a line for each family, so that a new version shows what it changed."""
    parts = []
    for name, value in found.items():
        entries = value.items() if isinstance(value, dict) else [(None, entry) for entry in value]
        lines = [f"{json.dumps(key)}: {json.dumps(entry)}" if key else json.dumps(entry) for key, entry in entries]
        ends = "{}" if isinstance(value, dict) else "[]"
        parts.append(f"{json.dumps(name)}: {ends[0]}\n" + ",\n".join(lines) + f"\n{ends[1]}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())

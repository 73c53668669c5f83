"""Which layer of a config is of which kind: by its list of types, by an older spelling, or by the family's habit."""

from __future__ import annotations

from typing import Any

from kvviz.memory.fields import Fields, shown

TYPES = {
    "full_attention": "full",
    "attention": "full",
    "global_attention": "full",
    "global": "full",
    "sliding_attention": "sliding",
    "sliding_window_attention": "sliding",
    "local_attention": "sliding",
    "local": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "state",
}
# one full layer in every so many, the last of each group; the habit of a family whose config does not say
FULL_EVERY = {"gemma2": 2, "gpt_oss": 2, "gemma3": 6, "gemma3_text": 6, "gemma4": 6, "gemma4_text": 6}
FULL_EVERY |= {"gemma3n": 5, "gemma3n_text": 5, "cohere2": 4, "olmo3": 4, "exaone4": 4}
ALL_SLIDING = {"mistral", "mixtral", "ministral", "starcoder2"}
UNSAID_MEANS_FULL = ("qwen2", "qwen3", "smollm3")  # use_sliding_window is false unless it is set
LINEAR_FAMILIES = ("qwen3_next", "qwen3_5", "qwen3_6")


def kinds_of(fields: Fields, layers: int, family: str, notes: list[str]) -> list[str]:
    """The kind of every layer: full, sliding, chunked or state."""
    kinds = (
        listed_kinds(fields, layers)
        or chunked_kinds(fields, layers, family)
        or linear_kinds(fields, layers, family)
        or sliding_kinds(fields, layers, family, notes)
    )
    if window_of(fields) is None and "sliding" in kinds:
        if fields.flag("use_sliding_window") is False:
            return ["full" if kind == "sliding" else kind for kind in kinds]
        raise ValueError("The config has sliding layers but no number for sliding_window; add it.")
    return kinds


def window_of(fields: Fields) -> int | None:
    """Tokens a sliding layer holds; None where the config has none or switches it off."""
    window = fields.any_of("window")
    return None if fields.flag("use_sliding_window") is False else window


def listed_kinds(fields: Fields, layers: int) -> list[str] | None:
    """Lists with an entry a layer, in the spellings that models use."""
    return (
        fields.listed("layer_types", layers, TYPES)
        or fields.listed("hybrid_layer_pattern", layers, {0: "full", 1: "sliding"})
        or fields.listed("attention_layers", layers, TYPES)
        or gpt_neo_kinds(fields.get("attention_types"), layers)
    )


def gpt_neo_kinds(value: Any, layers: int) -> list[str] | None:
    """``[[["global", "local"], 12]]``: a pattern and how often it is repeated."""
    if value is None:
        return None
    wrong = ValueError(f"The field attention_types={shown(value)} must be pairs of a pattern and a number of repeats.")
    kinds: list[str] = []
    for pair in value if isinstance(value, list) else [None]:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], list) and type(pair[1]) is int):
            raise wrong
        if not 1 <= pair[1] <= layers or not all(isinstance(word, str) and word in TYPES for word in pair[0]):
            raise wrong
        kinds += [TYPES[word] for word in pair[0]] * pair[1]
        if len(kinds) > layers:
            raise wrong
    if len(kinds) != layers:
        raise wrong
    return kinds


def chunked_kinds(fields: Fields, layers: int, family: str) -> list[str] | None:
    """Llama 4: layers with RoPE look at a chunk, the others (every fourth) at everything."""
    if fields.whole("attention_chunk_size") is None:
        return None
    with_rope = fields.listed("no_rope_layers", layers, {0: "full", 1: "chunked"})
    if with_rope is None and not family.startswith("llama4"):
        raise ValueError("The config has attention_chunk_size but no layer_types to say which layers use it; add them.")
    return with_rope or every(layers, fields.whole("no_rope_layer_interval") or 4, "chunked")


def linear_kinds(fields: Fields, layers: int, family: str) -> list[str] | None:
    """Qwen3-Next and its kin: one full layer in every ``full_attention_interval``, the others linear."""
    interval = fields.whole("full_attention_interval")
    if interval is None and family.startswith(LINEAR_FAMILIES):
        interval = 4
    return None if interval is None else every(layers, interval, "state")


def sliding_kinds(fields: Fields, layers: int, family: str, notes: list[str]) -> list[str]:
    """Sliding layers by a pattern, by a first layer, or by the family; refused where the config does not say."""
    window = window_of(fields)
    if window is None:
        sliding_by_habit = family in FULL_EVERY and "sliding_window" not in fields.values
        return every(layers, FULL_EVERY[family], "sliding") if sliding_by_habit else ["full"] * layers
    if (interval := pattern_of(fields, family)) is not None:
        return every(layers, interval, "sliding") if isinstance(interval, int) else repeated(interval, layers)
    if fields.flag("use_sliding_window"):
        first = fields.whole("max_window_layers", least=0) or 0
        return ["sliding" if layer >= first else "full" for layer in range(layers)]
    if family.startswith(UNSAID_MEANS_FULL):
        return ["full"] * layers
    if family == "phi3":
        notes.append(f"Counted as full attention: not every runtime honours this family's sliding_window={window:,}.")
        return ["full"] * layers
    if family in ALL_SLIDING:
        return ["sliding"] * layers
    raise ValueError(
        f"The config has sliding_window={window} but neither layer_types nor sliding_window_pattern to say which "
        "layers use it; add one of them."
    )


def pattern_of(fields: Fields, family: str) -> int | str | None:
    """``sliding_window_pattern``: one full layer in every so many, or letters such as LLLG."""
    for name in ("sliding_window_pattern", "_sliding_window_pattern"):
        value = fields.get(name)
        if isinstance(value, str) and value and set(value) <= set("LG"):
            return value
        if value is not None:
            return fields.whole(name)
    return FULL_EVERY.get(family)


def every(layers: int, interval: int, other: str) -> list[str]:
    """One full layer in every ``interval``, the last of each group."""
    return ["full" if layer % interval == interval - 1 else other for layer in range(layers)]


def repeated(letters: str, layers: int) -> list[str]:
    return ["full" if letters[layer % len(letters)] == "G" else "sliding" for layer in range(layers)]

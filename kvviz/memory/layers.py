"""Which layer of a config is of which kind: by its list of types, by an older spelling, or by the family's habit."""

from __future__ import annotations

from typing import Any

from kvviz.memory.fields import Fields, shown
from kvviz.memory.stock import habit, has_first_sliding, is_known, knows_window
from kvviz.memory.windows import window_of

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
    "indexed_attention": "indexed",
    "conv": "conv",
    "mlp": "none",
    "moe": "none",
}
UNSAID_MEANS_FULL = ("qwen2", "qwen3", "smollm3")  # use_sliding_window is false unless it is set
LINEAR_FAMILIES = ("qwen3_next", "qwen3_5", "qwen3_6")  # one full layer in every four, if the config does not say
SHARED_INDEXERS = ("hy_v4",)  # model types whose layers share indexers unless they say otherwise
SHARING = ("index_topk_freq", "index_topk_pattern")
ADD_TYPES = "add layer_types, one word a layer."


def kinds_of(fields: Fields, layers: int, family: str, notes: list[str]) -> list[str]:
    """The kind of every layer: full, sliding, chunked, indexed, state, conv, or none where it has no attention."""
    window = window_of(fields, family)
    kinds = (
        listed_kinds(fields, layers, notes)
        or local_kinds(fields, layers)
        or chunked_kinds(fields, layers, family)
        or linear_kinds(fields, layers, family)
        or sliding_kinds(fields, layers, family, window, notes)
    )
    kinds = with_indexers(kinds, fields, layers, family)
    if window is None and "sliding" in kinds:
        if fields.flag("use_sliding_window") is False:
            return ["full" if kind == "sliding" else kind for kind in kinds]
        raise ValueError("The config has sliding layers but no number for sliding_window; add it.")
    return kinds


def with_indexers(kinds: list[str], fields: Fields, layers: int, family: str) -> list[str]:
    """Which latent layers hold the keys of an indexer: all, those that layer_types names, less those that share one."""
    if fields.get("index_head_dim") is None:
        return kinds
    if not fields.get("layer_types"):
        kinds = ["indexed" if kind == "full" else kind for kind in kinds]
    own = fields.listed("indexer_types", layers, {"full": "indexed", "shared": "full"})
    if own is None:
        if family.startswith(SHARED_INDEXERS) or any(fields.get(name) not in (None, 1) for name in SHARING):
            raise ValueError("Layers share an indexer here, and the config has no indexer_types to say which; add it.")
        return kinds
    return [mine if kind == "indexed" else kind for kind, mine in zip(kinds, own, strict=True)]


def listed_kinds(fields: Fields, layers: int, notes: list[str]) -> list[str] | None:
    """Lists with an entry a layer, in the spellings that models use."""
    listed = fields.listed("layer_types", layers, TYPES)
    if listed or (listed := fields.listed("hybrid_layer_pattern", layers, {0: "full", 1: "sliding"})):
        return listed
    older = fields.listed("attention_layers", layers, TYPES) or gpt_neo_kinds(fields.get("attention_types"), layers)
    if older and "sliding" in older:
        notes.append("Local layers are counted by their window: not every runtime drops what lies outside it.")
    return older


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


def local_kinds(fields: Fields, layers: int) -> list[str] | None:
    """``global_attn_every_n_layers``: the first of each group is full in ModernBERT, the last elsewhere."""
    interval = fields.whole("global_attn_every_n_layers")
    if interval is None:
        return None
    if fields.get("local_attention") is None:
        return every(layers, interval, "sliding")
    return ["sliding" if layer % interval else "full" for layer in range(layers)]


def chunked_kinds(fields: Fields, layers: int, family: str) -> list[str] | None:
    """Llama 4: layers with RoPE look at a chunk, the others (every fourth) at everything."""
    if fields.whole("attention_chunk_size") is None:
        return None
    with_rope = fields.listed("no_rope_layers", layers, {0: "full", 1: "chunked"})
    if with_rope is None and not family.startswith("llama4"):
        raise ValueError("The config has attention_chunk_size but no layer_types to say which layers use it; add them.")
    return with_rope or every(layers, fields.whole("no_rope_layer_interval") or 4, "chunked")


def linear_kinds(fields: Fields, layers: int, family: str) -> list[str] | None:
    """One full layer in every so many, the others linear; Ring's and Ling's after the last whole group are full."""
    if (group := fields.whole("layer_group_size")) is not None and family != "bailing_hybrid":
        tail = layers // group * group
        return every(tail, group, "state") + ["full"] * (layers - tail)
    interval = fields.whole("full_attention_interval")
    if interval is None and family.startswith(LINEAR_FAMILIES):
        interval = 4
    return None if interval is None else every(layers, interval, "state")


def sliding_kinds(fields: Fields, layers: int, family: str, window: int | None, notes: list[str]) -> list[str]:
    """Sliding layers by a pattern, by a first layer, or by the family; refused where the config does not say."""
    if window is None:
        return without_window(layers, family)
    if (interval := pattern_of(fields)) is not None:
        return every(layers, interval, "sliding") if isinstance(interval, int) else repeated(interval, layers)
    if fields.flag("use_sliding_window") or slides_from_a_layer(fields, family):
        return first_sliding(fields, layers, family)
    if family.startswith(UNSAID_MEANS_FULL):
        return ["full"] * layers
    if family == "phi3":
        notes.append(f"Counted as full attention: not every runtime honours this family's sliding_window={window:,}.")
        return ["full"] * layers
    if knows_window(family) and (kinds := habitual(layers, family)) is not None:
        return kinds
    raise ValueError(
        f"The config has sliding_window={window} but neither layer_types nor sliding_window_pattern to say which "
        "layers use it; add one of them."
    )


def without_window(layers: int, family: str) -> list[str]:
    """The kinds of a config without a window: full where the family slides everywhere or nowhere."""
    kinds = habitual(layers, family)
    if kinds is None and is_known(family):
        raise ValueError(f"The config does not say which kind each layer of {family} has; {ADD_TYPES}")
    return ["full"] * layers if kinds is None or set(kinds) == {"sliding"} else kinds


def habitual(layers: int, family: str) -> list[str] | None:
    """The kinds that the family's own config class gives layers that no field describes."""
    words = habit(family, layers)
    if words is None or not set(words) <= set(TYPES):
        return None
    return [TYPES[word] for word in words]


def slides_from_a_layer(fields: Fields, family: str) -> bool:
    """Whether the family has a first sliding layer and no switch (dots.llm1)."""
    has_first = fields.get("max_window_layers") is not None and "use_sliding_window" not in fields.values
    return has_first and is_known(family)


def first_sliding(fields: Fields, layers: int, family: str) -> list[str]:
    """``use_sliding_window`` with ``max_window_layers``, the first layer that slides."""
    first = fields.whole("max_window_layers", least=0)
    if is_known(family) and not has_first_sliding(family):
        raise ValueError(f"The config has use_sliding_window=true and nothing that says for which layers; {ADD_TYPES}")
    return ["sliding" if layer >= (first or 0) else "full" for layer in range(layers)]


def pattern_of(fields: Fields) -> int | str | None:
    """``sliding_window_pattern``: one full layer in every so many, or letters such as LLLG."""
    for name in ("sliding_window_pattern", "_sliding_window_pattern"):
        value = fields.get(name)
        if isinstance(value, str) and value and set(value) <= set("LG"):
            return value
        if value is not None:
            return fields.whole(name)
    return None


def every(layers: int, interval: int, other: str) -> list[str]:
    """One full layer in every ``interval``, the last of each group."""
    return ["full" if layer % interval == interval - 1 else other for layer in range(layers)]


def repeated(letters: str, layers: int) -> list[str]:
    return ["full" if letters[layer % len(letters)] == "G" else "sliding" for layer in range(layers)]

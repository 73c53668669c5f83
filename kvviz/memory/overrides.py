"""``per_layer_config``: layers whose sizes differ from those of the whole model, as transformers saves them."""

from __future__ import annotations

from typing import Any, TypeAlias

from kvviz.memory.fields import Fields, shown

Words: TypeAlias = tuple[tuple[str, Any], ...]
# fields of a layer that kvviz counts with, and those that change no byte of a cache
COUNTED = {"head_dim", "num_key_value_heads", "v_head_dim"}
HARMLESS = {"intermediate_size", "moe_intermediate_size", "num_experts", "num_local_experts", "rope_theta"}
# what the full layers have, which stands in the layers' own fields where there are any
OF_FULL_LAYERS = ("global_head_dim", "num_global_key_value_heads")


def overrides(fields: Fields, layers: int) -> list[Words]:
    """The fields that each layer has of its own."""
    own: list[Words] = [()] * layers
    given = fields.get("per_layer_config")
    if given is None:
        return own
    without: Words = tuple((name, None) for name in OF_FULL_LAYERS)
    own = [without] * layers
    for place, words in layers_of(given, layers):
        own[place] = without + tuple((name, words[name]) for name in sorted(COUNTED & set(words)))
    return own


def layers_of(given: Any, layers: int) -> list[tuple[int, dict[str, Any]]]:
    """The layers' numbers and fields; refused where they are not understood."""
    if not isinstance(given, dict):
        raise ValueError(f"The field per_layer_config={shown(given)} must be an object with an entry for some layers.")
    found = []
    for place, words in ((str(place), words) for place, words in given.items()):
        if not (place.isascii() and place.isdecimal() and len(place) < 6 and int(place) < layers):
            raise ValueError(
                f"The field per_layer_config names the layer {shown(place)}; there are {layers}, from 0 on."
            )
        if not isinstance(words, dict) or not set(words) <= COUNTED | HARMLESS or not are_numbers(words):
            raise ValueError(f"The field per_layer_config has {shown(words)}, which kvviz has no formula for.")
        found.append((int(place), words))
    return found


def are_numbers(words: dict[str, Any]) -> bool:
    return all(words[name] is None or type(words[name]) is int for name in COUNTED & set(words))

"""Any model's ``config.json`` as a Shape; what is not understood is refused.

Fields decide. The model type says what no field does: the defaults of transformers' config class, and whole families
whose cache is another thing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from kvviz.memory.families import differences, family_of
from kvviz.memory.fields import MOST_LAYERS, NAMES, Fields, is_said, parsed, shown
from kvviz.memory.heads import unfolded
from kvviz.memory.layers import kinds_of
from kvviz.memory.overrides import overrides
from kvviz.memory.refusals import refuse_unknown
from kvviz.memory.shape import NUMBER_BYTES, Shape, number_format
from kvviz.memory.sizes import Sizes
from kvviz.memory.stock import completed, default_sizes

NESTED = ("text_config", "llm_config", "language_config")
SENSES = ("vision_config", "audio_config")  # parts that read other things than text


def read_config(text: str, name: str = "your config") -> Shape:
    """The shape that a ``config.json`` describes; ValueError in one sentence names the field that is wrong."""
    return shape_of(parsed(text), name)


def shape_of(config: Mapping[str, Any], name: str) -> Shape:
    """The same from a JSON object that was read already."""
    notes = list[str]()
    text = text_part(config)
    part = unfolded(text)
    outer = Fields(config).word("model_type")
    family = family_of(Fields(part), outer)
    fields = completed(part, family, outer, is_nested=text is not config)
    refuse_unknown(fields)
    if defaults := default_sizes(fields):
        notes.append(f"Not in the config, so as in transformers' {family}: {', '.join(defaults)}.")
    layers = fields.needed("layers", MOST_LAYERS)
    dtype = dtype_of(config, fields, notes)
    kinds = kinds_of(fields, layers, family, notes)[: stored_layers(fields, layers, notes)]
    own = overrides(fields, layers)
    sizes = {words: Sizes.read(fields.changed(dict(words)), family, NUMBER_BYTES[dtype]) for words in {(), *own}}
    places = placed(list(zip(kinds, own[: len(kinds)], strict=True)))
    groups = tuple(group for (kind, words), where in places.items() for group in sizes[words].groups(kind, where))
    notes += remarks(config, fields, dtype)
    longest = next((number for number in map(fields.whole, NAMES["longest"]) if number is not None), None)
    return Shape(name, groups, sizes[()].heads, sizes[()].value_width, dtype, longest, tuple(notes))


def placed(kinds: list[Hashable]) -> dict[Any, tuple[int, ...]]:
    """The numbers of the layers of each kind."""
    return {kind: tuple(place for place, other in enumerate(kinds) if other == kind) for kind in dict.fromkeys(kinds)}


def stored_layers(fields: Fields, layers: int, notes: list[str]) -> int:
    """Layers that hold a cache of their own; the others, the last ones, read theirs."""
    shared = fields.whole("num_kv_shared_layers", least=0) or 0
    if shared >= layers:
        raise ValueError(f"The field num_kv_shared_layers={shared} leaves none of {layers} layers a cache.")
    if shared:
        notes.append(f"The last {shared} layers read the cache of earlier ones and hold nothing themselves.")
    return layers - shared


NO_FORMAT = "The config names no number format: bfloat16 is taken."


def text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of the config that describes the language model."""
    for name in NESTED:
        part = config.get(name)
        if part is not None:
            if not isinstance(part, dict):
                raise ValueError(f"The field {name}={shown(part)} must be an object with the text model's fields.")
            return part
    return config


def dtype_of(config: Mapping[str, Any], fields: Fields, notes: list[str]) -> str:
    """The number format the config names, else bfloat16."""
    for place in (fields, Fields(config)):
        for name in ("dtype", "torch_dtype"):
            word = place.word(name)
            if word and word != "auto":  # auto = as the weights are, which a config does not say
                try:
                    return number_format(word)
                except ValueError as error:
                    raise ValueError(f"The field {name}: {error}") from None
    notes.append(NO_FORMAT)
    return "bfloat16"


def remarks(config: Mapping[str, Any], fields: Fields, dtype: str) -> list[str]:
    """What the config says beside the cache of the text model."""
    said = differences(fields)
    if fields.whole("num_nextn_predict_layers", MOST_LAYERS, 0):
        said.append("The layers that predict further tokens (num_nextn_predict_layers) are not counted.")
    if senses := [name for name in SENSES if is_said(config.get(name))]:
        said.append(f"Only the text model is counted; what reads images or sound ({', '.join(senses)}) keeps no keys.")
    if asked := coded_cache(config):
        said.append(
            f"The checkpoint asks for a quantised cache ({asked}), which is not counted: the numbers here are {dtype}. "
            "For one of 8 bits choose the number format float8 or int8; for fewer bits choose a storage."
        )
    return said


def coded_cache(config: Mapping[str, Any]) -> str:
    """What the checkpoint says of a quantised cache (compressed-tensors, ModelOpt, Quark, Qwen); empty if nothing."""
    found = config.get("quantization_config")
    quantisation = found if isinstance(found, dict) else {}
    for name in ("kv_cache_scheme", "kv_cache_quant_algo", "kv_cache_quant_config"):
        if is_said(quantisation.get(name)):
            return f"{name}={shown(quantisation[name])}"
    return "use_cache_quantization" if config.get("use_cache_quantization") is True else ""

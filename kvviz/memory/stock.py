"""What transformers' config classes take for a field that is absent, as ``data/stock_defaults.json`` has it.

``python -m benchmarks.stock_defaults`` writes the table from the pinned version; nothing here needs transformers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kvviz.memory.fields import NAMES, Fields, shown

TABLE = Path(__file__).parent / "data" / "stock_defaults.json"
SIZES = ("layers", "heads", "hidden", "kv_heads", "head_width", "window")
ESSENTIAL = {name for what in ("layers", "heads", "hidden") for name in NAMES[what]}
# the fields besides sizes whose default changes a count or whether there can be one
SWITCHES = (
    *("attention_chunk_size", "attention_k_eq_v", "attention_window_size", "attn_layer_indices", "attn_layer_period"),
    *("conv_L_cache", "cross_attention_layers", "decoder_layers", "encoder_layers", "full_attention_interval"),
    *("global_head_dim", "index_head_dim", "is_decoder", "is_encoder_decoder", "kv_lora_rank", "layer_group_size"),
    *("linear_conv_kernel_dim", "linear_head_dim", "linear_key_head_dim", "linear_num_heads", "linear_num_key_heads"),
    *("linear_num_value_heads", "linear_value_head_dim", "local_attention", "mamba_d_state", "max_window_layers"),
    *("multi_query", "n_recurrent_loops", "new_decoder_architecture", "no_rope_layer_interval", "num_kv_shared_layers"),
    *("num_global_key_value_heads", "q_lora_rank", "qk_rope_head_dim", "ssm_state_size", "state_size"),
    *("swa_head_dim", "swa_num_key_value_heads", "swa_v_head_dim", "use_sliding_window", "v_head_dim"),
)
READ = {name for what in SIZES for name in NAMES[what]} | set(SWITCHES)


@cache
def table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return found


def text_family(family: str) -> str:
    """The model type of a composite config's text part where that part names none."""
    return str(table()["texts"].get(family, {}).get("family", family))


def is_known(family: str) -> bool:
    return family in table()["families"]


def habit(family: str, layers: int) -> list[str] | None:
    """The kinds of layers of a config that lists none; None where they follow no pattern or are not known."""
    entry = table()["families"].get(family, {})
    if "layers" not in entry:
        return None
    kinds = [entry["layers"][place % len(entry["layers"])] for place in range(layers)]
    return [*kinds[:-1], entry.get("last", kinds[-1])]


def knows_window(family: str) -> bool:
    """Whether the family's class has a sliding_window, so that its layers say what becomes of one."""
    return bool(table()["families"].get(family, {}).get("window"))


def has_first_sliding(family: str) -> bool:
    """Whether the family's class reads max_window_layers."""
    return "max_window_layers" in table()["families"].get(family, {}).get("fields", {})


def encoders() -> list[str]:
    """Model types that only read, unless they are told to be decoders."""
    return list(table()["encoders"])


def others() -> list[str]:
    """Model types that write no text: towers for pictures and sound, detectors, forecasters, parts of other models."""
    return list(table()["others"])


def beside_an_encoder() -> list[str]:
    """Model types whose decoder looks at an encoder's output too, unless they are told otherwise."""
    return list(table()["beside_an_encoder"])


def completed(values: Mapping[str, Any], family: str, outer: str, is_nested: bool) -> Fields:
    """The config's fields with the defaults for what it leaves out: those of the composite model around it first.

    Only a nested part may leave out how large the model is: there transformers itself does not write its defaults.
    """
    entry = table()["families"].get(family, {})
    values = {name: value for name, value in values.items() if name not in entry.get("ignores", [])}
    said = {name for name, value in values.items() if value is not None}
    taken = {name for what in NAMES for name in NAMES[what] if said & set(NAMES[what])}
    defaults = {**entry.get("fields", {}), **table()["texts"].get(outer, {}).get("fields", {})}
    if not is_nested:
        taken |= ESSENTIAL
    added = {name: value for name, value in defaults.items() if name not in values and name not in taken}
    return Fields({**values, **added}, family, added)


def default_sizes(fields: Fields) -> list[str]:
    """The sizes that the config leaves to its family, as ``name=value``."""
    names = [name for what in SIZES for name in NAMES[what] if name in fields.defaults]
    return [f"{name}={shown(fields.get(name))}" for name in names]

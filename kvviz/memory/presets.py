"""Models by name, each read from the fields of its config as recorded in ``kvviz/memory/data/model_configs.csv``."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvviz.knobs import suggestion
from kvviz.memory.config import shape_of
from kvviz.memory.shape import Shape

TABLE = Path(__file__).parent / "data" / "model_configs.csv"
# columns that are config fields under the same name
FIELDS = (
    *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_size", "kv_lora_rank"),
    *("qk_rope_head_dim", "v_head_dim", "sliding_window", "use_sliding_window", "max_position_embeddings"),
)
RUNNING = {"smollm2-135m-instruct": "HuggingFaceTB/SmolLM2-135M"}  # the model that runs here has the same shape


def rows() -> list[dict[str, str]]:
    """The table as it is in the file."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def config_of(row: dict[str, str]) -> dict[str, Any]:
    """A row's fields as the config has them; ``more_fields`` are those that few models have."""
    config = {name: json.loads(row[name]) for name in FIELDS if row[name]}
    if row["head_dim_in_config"] == "yes":
        config["head_dim"] = int(row["head_dim"])
    if not row["dtype"].startswith("("):
        config["dtype"] = row["dtype"]
    return config | json.loads(row["more_fields"] or "{}")


def shape_from(row: dict[str, str]) -> Shape:
    shape = shape_of(config_of(row), row["model_id"])
    millions = row["parameters_million"]
    notes = (*filter(None, [row["shown_note"]]), *(note for note in shape.notes if "num_nextn" not in note))
    return replace(
        shape,
        parameters=int(millions) * 10**6 if millions else None,
        source=row["source"],
        as_of=row["as_of"],
        notes=notes,
    )


PRESETS: dict[str, dict[str, str]] = {row["model_id"]: row for row in rows()}


def full_name(word: str) -> str:
    """The preset that ``word`` names, with or without its owner, in any case; ValueError with the likely one."""
    names = {name.lower(): name for name in PRESETS}
    names |= {name.rpartition("/")[2].lower(): name for name in PRESETS} | RUNNING
    key = word.strip().lower()
    if key not in names:
        raise ValueError(f"There is no model {word!r} in the table; {suggestion(word, PRESETS)}")
    return names[key]


@lru_cache(maxsize=256)
def preset(word: str) -> Shape:
    """The shape of a model of the table."""
    return shape_from(PRESETS[full_name(word)])

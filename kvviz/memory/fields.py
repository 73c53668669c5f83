"""Reading one field of a ``config.json``: by any of its names, as a whole number, or a sentence that names it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

MAX_CONFIG_BYTES = 1_000_000
LARGEST = 2**40  # far above any field of any model
MOST_LAYERS = 10_000

NAMES = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"),
    "hidden": ("hidden_size", "n_embd", "n_embed", "d_model", "dim"),
    "kv_heads": (
        *("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "n_kv_head", "kv_n_heads"),
        *("num_query_groups", "num_attention_groups", "multi_query_group_num"),
    ),
    "head_width": ("head_dim", "kv_channels", "dim_head", "d_head", "d_kv", "attention_head_dim"),
    "longest": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
    "window": ("sliding_window", "sliding_window_size", "window_size"),
}


class Fields:
    """The fields that describe the text model; a wrong one is refused by its name."""

    def __init__(self, values: Mapping[str, Any], family: str = "", defaults: Collection[str] = ()) -> None:
        self.values = values
        self.family, self.defaults = family, defaults  # fields that are not in the config but in the family's class

    def told(self, name: str) -> str:
        """``name=value``, and whose default it is where the config does not say it."""
        said = f"{name}={shown(self.values.get(name))}"
        return f"{said} (the default of {self.family})" if name in self.defaults else said

    def without(self, names: Collection[str]) -> Fields:
        left = {name: value for name, value in self.values.items() if name not in names}
        return Fields(left, self.family, self.defaults)

    def changed(self, more: Mapping[str, Any]) -> Fields:
        return Fields({**self.values, **more}, self.family, self.defaults)

    def get(self, name: str) -> Any:
        return self.values.get(name)

    def whole(self, name: str, limit: int = LARGEST, least: int = 1) -> int | None:
        """A whole number; None where the field is absent or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if type(value) is not int or not least <= value <= limit:
            raise ValueError(f"The field {name}={shown(value)} must be a whole number from {least} to {limit:,}.")
        return value

    def any_of(self, what: str, limit: int = LARGEST, least: int = 1) -> int | None:
        """The same by any of a field's names; two names that disagree are refused."""
        found = {name: number for name in NAMES[what] if (number := self.whole(name, limit, least)) is not None}
        if len(set(found.values())) > 1:
            said = " and ".join(f"{name}={number}" for name, number in found.items())
            raise ValueError(f"The fields {said} disagree; leave only the right one.")
        return next(iter(found.values()), None)

    def needed(self, what: str, limit: int = LARGEST) -> int:
        """A number without which nothing can be counted."""
        number = self.any_of(what, limit)
        if number is None:
            raise ValueError(f"The config has no {NAMES[what][0]} (nor {', '.join(NAMES[what][1:])}); add it.")
        return number

    def required(self, name: str, why: str) -> int:
        number = self.whole(name)
        if number is None:
            raise ValueError(f"The config has no {name}, which {why}; add it.")
        return number

    def flag(self, name: str, default: bool | None = None) -> bool | None:
        """Yes or no; the default where the field is absent or null."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ValueError(f"The field {name}={shown(value)} must be true or false.")
        return value

    def word(self, name: str) -> str:
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ValueError(f"The field {name}={shown(value)} must be a word.")
        return value

    def listed(self, name: str, length: int, choices: Mapping[Any, str]) -> list[str] | None:
        """One word a layer; None where the field is absent, null or empty."""
        value = self.values.get(name)
        if value is None or value == []:
            return None
        if not isinstance(value, list) or len(value) != length:
            raise ValueError(f"The field {name} must be a list of {length} entries, one a layer.")
        for entry in value:
            if isinstance(entry, (list, dict, float, bool)) or entry not in choices:
                known = ", ".join(map(str, choices))
                raise ValueError(f"The field {name} names {shown(entry)}, which kvviz does not know; it knows {known}.")
        return [choices[entry] for entry in value]


def is_said(value: Any) -> bool:
    """Whether a field says something: not absent, and neither no, none nor empty."""
    return value not in (None, False, 0, [], {}, "")


def shown(value: Any) -> str:
    """A value as JSON, cut to what fits a sentence."""
    try:
        word = json.dumps(value)
    except (ValueError, RecursionError):
        word = type(value).__name__
    return word if len(word) <= 40 else word[:39] + "…"


def parsed(text: str) -> Mapping[str, Any]:
    """The JSON object in ``text``; ValueError in one sentence for anything else."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_CONFIG_BYTES:
        raise ValueError(f"The config has {size:,} bytes; at most {MAX_CONFIG_BYTES:,} are read.")
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError("The config is nested too deeply to be one; paste the model's own config.json.") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"The config is not JSON: {error.msg} in line {error.lineno}.") from None
    except ValueError as error:
        # a number of more digits than Python reads says so in words about Python
        said = str(error) if "config" in str(error) else "The config holds a number of too many digits."
        raise ValueError(said) from None
    if not isinstance(value, dict):
        raise ValueError("The config must be one JSON object such as a model's config.json.")
    return value


def refuse_constant(name: str) -> Any:
    raise ValueError(f"The config holds {name}, which is not a number; JSON has whole numbers and decimals.")


def config_words(raw: bytes) -> str:
    """UTF-8, with or without a byte order mark."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"The config is not UTF-8 text: byte {error.start} is wrong.") from None

"""How many KV heads and how many numbers in one, from whichever fields a config has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kvviz.memory.fields import NAMES, Fields, is_said, shown

WIDEST = 2**24  # numbers in a head; heads; far above any model
# a name of KV heads that is not known: it speaks of KV or of groups, and of a number or of heads
KV_WORDS, NUMBER_WORDS = re.compile("kv|key_value|group|gqa"), re.compile("head|num|gqa|(^|_)n_")
# such names that mean something else: routing, norms, convolutions, states
HARMLESS = re.compile("shared_layers|expert|rout|moe|norm|conv|ssm|mamba|(^|_)code|linear")
HARMLESS_NAMES = ("n_group", "n_groups", "num_group", "num_groups", "num_hidden_groups", "kv_channels")
# words for the kind of attention: one KV head, as many as query heads, or as the number beside them says
ONE = ("multiquery", "multiquery_attention", "mqa")
EACH = ("multihead", "multihead_attention", "mha")
SOME = ("gqa", "groupedquery", "grouped_query_attention")
# a switch and the number that says nothing where the switch is off
SWITCHED = {"multi_query_attention": "multi_query_group_num", "group_query_attention": "num_query_groups"}


def kv_heads_of(fields: Fields, heads: int) -> int:
    """KV heads: by the kind of attention, by number, or as many as query heads; they must divide the query heads."""
    kv_heads = by_kind(fields, heads) or named_kv_heads(switched(fields)) or heads
    if heads % kv_heads:
        name = next((name for name in NAMES["kv_heads"] if fields.get(name) is not None), NAMES["kv_heads"][0])
        raise ValueError(f"The field {fields.told(name)} must divide the {heads} query heads.")
    return kv_heads


def by_kind(fields: Fields, heads: int) -> int | None:
    """KV heads that a switch or word decides; None where a number has to say it."""
    word = fields.word("attention_head_type")
    if word and word not in (*ONE, *EACH, *SOME):
        known = ", ".join((ONE[0], EACH[0], SOME[0]))
        raise ValueError(f"The field attention_head_type={shown(word)} is not known to kvviz; it knows {known}.")
    if fields.flag("new_decoder_architecture"):
        return None  # Falcon's multi_query then says nothing
    if word in ONE or has_one_kv_head(fields):
        return 1  # Falcon's num_kv_heads says 71 here and means nothing
    if word in EACH:
        return heads
    if fields.flag("multi_query_attention"):
        return fields.any_of("kv_heads", WIDEST) or 1
    return None


def has_one_kv_head(fields: Fields) -> bool:
    """Whether the switch multi_query is on; the families that read it have no num_key_value_heads beside it."""
    number = fields.get("num_key_value_heads")
    if not fields.flag("multi_query"):
        return False
    if number not in (None, 1):
        raise ValueError(
            f"The fields multi_query=true and num_key_value_heads={shown(number)} disagree; leave one out."
        )
    return True


def switched(fields: Fields) -> Fields:
    """The fields without those numbers whose switch is off."""
    off = {name for switch, name in SWITCHED.items() if fields.flag(switch) is False}
    return fields.without(off)


def named_kv_heads(fields: Fields) -> int | None:
    """KV heads by any known name; refused where only an unknown name speaks of them."""
    number = fields.any_of("kv_heads", WIDEST)
    if number is None and fields.get("kv_lora_rank") is None:
        for name, value in fields.values.items():
            if is_said(value) and may_mean_kv_heads(name.lower()):
                raise ValueError(
                    f"The field {shown(name)} may say how many KV heads there are, in a spelling kvviz does not know; "
                    "add num_key_value_heads."
                )
    return number


def may_mean_kv_heads(name: str) -> bool:
    if name in HARMLESS_NAMES or HARMLESS.search(name):
        return False
    return bool(KV_WORDS.search(name) and NUMBER_WORDS.search(name))


def widths_of(fields: Fields, heads: int) -> tuple[int, int]:
    """Numbers in one key and in one value."""
    unused = fields.flag("use_mla") is False  # DeepSeek-VL2-tiny: the widths of a latent attention it lacks are 0
    value = fields.whole("v_head_dim", WIDEST, least=0 if unused else 1) or None
    width = fields.any_of("head_width", WIDEST) or derived_width(fields, heads, value)
    return width, value or width


def derived_width(fields: Fields, heads: int, value: int | None) -> int:
    """hidden_size / heads, which must come out even, where the config names no head size."""
    if fields.get("kv_lora_rank") is not None and value is not None:
        return value
    hidden = fields.needed("hidden")
    if hidden % heads:
        raise ValueError(
            f"The config has no head_dim, and hidden_size={hidden} is no multiple of {heads} heads; add it."
        )
    return hidden // heads


def unfolded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The config with MPT's ``attn_config`` (and DBRX's) beside the other fields, in their spelling."""
    inner = values.get("attn_config")
    if inner is None:
        return dict(values)
    if not isinstance(inner, dict):
        raise ValueError(f"The field attn_config={shown(inner)} must be an object with the attention's fields.")
    found = {name: inner[name] for name in ("kv_n_heads", "head_dim", "sliding_window_size") if name in inner}
    if "attn_type" in inner:
        found["attention_head_type"] = inner["attn_type"]
    return {name: value for name, value in values.items() if name != "attn_config"} | found

"""Any model's ``config.json`` as a Shape. Fields decide, never the model's name; what is not understood is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvviz.memory import formulas
from kvviz.memory.fields import MOST_LAYERS, NAMES, Fields, parsed, shown
from kvviz.memory.layers import kinds_of, window_of
from kvviz.memory.shape import NUMBER_BYTES, Group, Shape, number_format

WIDEST = 2**24  # numbers in a head; heads; far above any model
NESTED = ("text_config", "llm_config", "language_config")
# fields that change what a cache holds in a way kvviz has no formula for
NOT_UNDERSTOOD = (
    *("compress_ratios", "block_configs", "hybrid_override_pattern", "layers_block_type", "block_types"),
    *("attn_layer_period", "attn_layer_indices", "ssm_cfg", "state_size", "ssm_state_size", "mamba_d_state"),
    *("linear_attn_config", "attn_config", "cross_attention_layers", "mixer_types", "use_cla", "cla_share_factor"),
    *("num_key_value_heads_per_layer", "indexer_compress_ratio", "rwkv_head_size", "time_step_rank"),
    *("attention_window_size", "is_encoder_decoder", "per_layer_config", "indexer_head_dim", "kv_sharing_modes"),
)
UNLESS_LISTED = ("full_attn_idxs", "conv_L_cache")  # LFM2; layer_types says which layers have a convolution instead
ENCODERS = (
    *("albert", "bert", "big_bird", "camembert", "convbert", "deberta", "deberta-v2", "distilbert", "electra", "ernie"),
    *("esm", "eurobert", "funnel", "layoutlm", "layoutlmv2", "layoutlmv3", "longformer", "megatron-bert", "mobilebert"),
    *("modernbert", "mpnet", "mra", "nezha", "nomic_bert", "nystromformer", "roberta", "roberta-prelayernorm"),
    *("roformer", "squeezebert", "vit", "xlm-roberta", "xlm-roberta-xl", "xmod", "yoso"),
)
# a name of KV heads that is not known: it speaks of KV or of groups, and of a number or of heads
KV_WORDS, NUMBER_WORDS = re.compile("kv|key_value|group|gqa"), re.compile("head|num|gqa|(^|_)n_")
# such names that mean something else: routing, norms, convolutions, states
HARMLESS = re.compile("shared_layers|expert|rout|moe|norm|conv|ssm|mamba|(^|_)code|linear")
HARMLESS_NAMES = ("n_group", "n_groups", "num_group", "num_groups", "num_hidden_groups", "kv_channels")


def read_config(text: str, name: str = "your config") -> Shape:
    """The shape that a ``config.json`` describes; ValueError in one sentence names the field that is wrong."""
    return shape_of(parsed(text), name)


def shape_of(config: Mapping[str, Any], name: str) -> Shape:
    """The same from a JSON object that was read already."""
    fields, notes = Fields(text_part(config)), list[str]()
    refuse_unknown(fields)
    family = family_of(fields)
    layers = fields.needed("layers", MOST_LAYERS)
    dtype = dtype_of(config, fields, notes)
    sizes = Sizes.read(fields, family, NUMBER_BYTES[dtype])
    kinds = kinds_of(fields, layers, family, notes)
    stored = layers - (fields.whole("num_kv_shared_layers", least=0) or 0)
    if stored < 1:
        raise ValueError(f"The field num_kv_shared_layers={layers - stored} leaves none of {layers} layers a cache.")
    if stored < layers:
        notes.append(f"The last {layers - stored} layers read the cache of earlier ones and hold nothing themselves.")
    if fields.whole("num_nextn_predict_layers", MOST_LAYERS, 0):
        notes.append("The layers that predict further tokens (num_nextn_predict_layers) are not counted.")
    places: dict[str, list[int]] = {}
    for place, kind in enumerate(kinds[:stored]):
        places.setdefault(kind, []).append(place)
    groups = tuple(group for kind, where in places.items() for group in sizes.groups(kind, tuple(where)))
    longest = fields.any_of("longest")
    return Shape(name, groups, sizes.heads, sizes.value_width, dtype, longest, tuple(notes))


def text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of the config that describes the language model."""
    for name in NESTED:
        part = config.get(name)
        if part is not None:
            if not isinstance(part, dict):
                raise ValueError(f"The field {name}={shown(part)} must be an object with the text model's fields.")
            return part
    return config


def family_of(fields: Fields) -> str:
    """The model type; refused where it stands for layers that no field describes, or for no cache at all."""
    family = fields.word("model_type")
    if family in ENCODERS and not fields.flag("is_decoder"):
        raise ValueError(f"The field model_type={shown(family)} names an encoder, which has no KV cache to count.")
    if family.startswith("longcat_flash"):
        raise ValueError(f"The field model_type={shown(family)} stands for two attentions a layer; kvviz counts one.")
    return family


def is_said(value: Any) -> bool:
    return value not in (None, False, 0, [], {}, "")


def refuse_unknown(fields: Fields) -> None:
    for name in NOT_UNDERSTOOD if is_said(fields.get("layer_types")) else (*NOT_UNDERSTOOD, *UNLESS_LISTED):
        if is_said(fields.get(name)):
            raise ValueError(f"The field {name} changes what the cache holds in a way kvviz has no formula for.")
    if fields.get("q_lora_rank") is not None and fields.get("kv_lora_rank") is None:
        raise ValueError("The config has q_lora_rank but no kv_lora_rank: a compressed attention without its width.")
    if fields.get("index_head_dim") is not None and fields.get("kv_lora_rank") is None:
        raise ValueError("The field index_head_dim is understood beside kv_lora_rank only.")
    if (is_latent := fields.flag("use_mla")) is not None and is_latent != (fields.get("kv_lora_rank") is not None):
        beside = "no kv_lora_rank" if is_latent else "a kv_lora_rank"
        raise ValueError(f"The config has use_mla={shown(is_latent)} and {beside}; leave only what holds.")
    kinds = fields.get("attn_type_list")
    if not isinstance(kinds, (list, type(None))):
        raise ValueError(f"The field attn_type_list={shown(kinds)} must be a list of numbers, one a layer.")
    for kind in kinds or []:
        if type(kind) is not int or kind != 1:
            raise ValueError(f"The field attn_type_list names {shown(kind)}; kvviz knows 1, full attention.")


def dtype_of(config: Mapping[str, Any], fields: Fields, notes: list[str]) -> str:
    """The number format the config names, else bfloat16."""
    for place in (fields, Fields(config)):
        for name in ("dtype", "torch_dtype"):
            if word := place.word(name):
                try:
                    return number_format(word)
                except ValueError as error:
                    raise ValueError(f"The field {name}: {error}") from None
    notes.append("The config names no number format: bfloat16 is taken.")
    return "bfloat16"


@dataclass(frozen=True)
class Sizes:
    """Heads and widths of each kind of layer."""

    fields: Fields
    heads: int
    kv_heads: int
    key_width: int
    value_width: int
    item_bytes: int
    window: int | None

    @classmethod
    def read(cls, fields: Fields, family: str, item_bytes: int) -> Sizes:
        heads = fields.needed("heads", WIDEST)
        kv_heads = kv_heads_of(fields, heads, family)
        if heads % kv_heads:
            name = next((name for name in NAMES["kv_heads"] if fields.get(name) is not None), NAMES["kv_heads"][0])
            raise ValueError(f"The field {name}={kv_heads} must divide the {heads} query heads.")
        unused = fields.flag("use_mla") is False  # DeepSeek-VL2-tiny: the widths of a latent attention it lacks are 0
        value = fields.whole("v_head_dim", WIDEST, least=0 if unused else 1) or None
        width = fields.any_of("head_width", WIDEST) or derived_width(fields, heads, value)
        return cls(fields, heads, kv_heads, width, value or width, item_bytes, window_of(fields))

    def groups(self, kind: str, places: tuple[int, ...]) -> list[Group]:
        """What the layers of one kind hold."""
        if kind == "state":
            return [Group("state", places, layer_bytes=self.state_bytes())]
        if self.fields.get("kv_lora_rank") is not None:
            return self.latent(kind, places)
        heads, key, value = self.of_kind(kind)
        window = {"sliding": self.window, "chunked": self.fields.whole("attention_chunk_size")}.get(kind)
        return [Group(kind, places, heads, key, value, window)]

    def of_kind(self, kind: str) -> tuple[int, int, int]:
        """KV heads, key width and value width; sliding and full layers may differ (MiMo, Gemma 4)."""
        whole = self.fields.whole
        if kind == "sliding":
            heads = whole("swa_num_key_value_heads", WIDEST) or self.kv_heads
            key = whole("swa_head_dim", WIDEST) or self.key_width
            return heads, key, whole("swa_v_head_dim", WIDEST) or (self.value_width if key == self.key_width else key)
        if kind == "full" and (width := whole("global_head_dim", WIDEST)) is not None:
            own = self.fields.flag("attention_k_eq_v", True)
            return (own and whole("num_global_key_value_heads", WIDEST)) or self.kv_heads, width, width
        return self.kv_heads, self.key_width, self.value_width

    def latent(self, kind: str, places: tuple[int, ...]) -> list[Group]:
        """MLA, and the keys of an indexer where the config has one."""
        if kind != "full":
            raise ValueError(f"The config has kv_lora_rank and {kind} layers; kvviz has no formula for both together.")
        latent = self.fields.required("kv_lora_rank", "is the width of the latent")
        rope = self.fields.required("qk_rope_head_dim", "is the part of a latent kept apart for RoPE")
        groups = [Group("mla", places, 1, latent + rope, 0, rope=rope)]
        if (width := self.fields.whole("index_head_dim", WIDEST)) is not None:
            groups.append(Group("indexer", places, 1, width, 0))
        return groups

    def state_bytes(self) -> int:
        """Bytes of one linear-attention layer; its state is float32 unless the config says otherwise."""
        need = self.fields.required
        state = number_format(self.fields.word("mamba_ssm_dtype") or "float32")
        return formulas.delta_state_bytes(
            need("linear_num_key_heads", "says how large the state of a linear layer is"),
            need("linear_num_value_heads", "says how large the state of a linear layer is"),
            need("linear_key_head_dim", "says how large the state of a linear layer is"),
            need("linear_value_head_dim", "says how large the state of a linear layer is"),
            need("linear_conv_kernel_dim", "says how many inputs a linear layer's convolution keeps"),
            self.item_bytes,
            NUMBER_BYTES[state],
        )


def kv_heads_of(fields: Fields, heads: int, family: str) -> int:
    """KV heads: named, one (Falcon's multi_query), or as many as query heads where nothing is said."""
    if fields.flag("new_decoder_architecture"):
        return named_kv_heads(fields) or heads
    if fields.flag("multi_query", family in ("falcon", "gpt_bigcode") or None):
        return 1  # Falcon's num_kv_heads says 71 here and means nothing
    for switch, name in (
        ("multi_query_attention", "multi_query_group_num"),
        ("group_query_attention", "num_query_groups"),
    ):
        if fields.flag(switch) is False:  # then the number beside it says nothing
            fields = Fields({key: value for key, value in fields.values.items() if key != name})
    if fields.flag("multi_query_attention"):
        return fields.any_of("kv_heads", WIDEST) or 1
    return named_kv_heads(fields) or heads


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

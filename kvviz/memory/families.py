"""What a model type stands for that no field of its config says: the refusals, and the few rules of single families."""

from __future__ import annotations

import re

from kvviz.memory.fields import Fields, shown
from kvviz.memory.stock import beside_an_encoder, encoders, is_known, others, text_family

CONSTANT = "keeps a state of constant size instead of keys and values, and kvviz has no formula for its size"
BOTH = "keeps a state beside the keys and values of a layer, and kvviz has no formula for its size"
# a family by the start of its model type: why its cache is not counted
NOT_COUNTED = {
    **dict.fromkeys(
        (
            *("abc", "comba", "delta_net", "deltanet", "falcon_mamba", "gated_deltanet", "gated_deltaproduct", "gla"),
            *("gsa", "hgrn", "hyena", "kda", "lightnet", "linear_attn", "log_linear", "mamba", "mesa_net", "mesanet"),
            *("mom", "rebased", "retnet", "rodimus", "rwkv", "stripedhyena", "ttt", "xlstm"),
        ),
        CONSTANT,
    ),
    **dict.fromkeys(("falcon_h1", "hymba", "zamba", "zaya", "samba", "inkling"), BOTH),
    "longcat_flash": "has two attentions a layer; kvviz counts one",
    "cpmant": "puts tokens of its own before the text; kvviz counts those of the text alone",
    "xlnet": "keeps the layers' inputs instead of keys and values, which kvviz has no formula for",
    "reformer": "keeps the layers' inputs and hashes instead of keys and values, which kvviz has no formula for",
    "gemma4_unified_assistant": "reads the cache of another model and has none of its own",
    "gemma4_assistant": "reads the cache of another model and has none of its own",
    "blt": "has several transformers with a cache each; kvviz counts one",
    "moshi": "has several transformers with a cache each; kvviz counts one",
    **dict.fromkeys(
        ("mllama", "musicgen", "pix2struct"), "looks at an encoder's output, whose keys and values kvviz does not count"
    ),
    **dict.fromkeys(("dory", "hrm_text"), "runs its layers several times, each with a cache; kvviz counts one"),
}
# encoders that transformers lists under none of their tasks, or no longer has
MORE_ENCODERS = ("layoutlmv2", "layoutlmv3", "nezha")
# of model types that transformers does not have: encoders by their name, and models whose tokens see what follows
ENCODER_NAME = re.compile("(^|_)(ro)?bert(_|$)|neobert|jina_bert|new_bert|vision_model$|vision_tower$|audio_encoder$")
SEE_BOTH_WAYS = ("llada", "dream")
ENCODER_CLASS = re.compile("For(MaskedLM|(Sequence|Token|Image|Audio)Classification|QuestionAnswering)$")
# every other kind of layer has so many times the KV heads of the full ones where the config gives no number
SLIDING_KV_FACTOR = {"mimo_v2_flash": 2}
# the field of previous tokens that a query sees beside its own
PREVIOUS_TOKENS = {"mimo_v2_flash": "sliding_window_size"}


def family_of(fields: Fields, outer: str) -> str:
    """The text model's type; refused where it stands for layers that no field describes, or for no cache at all."""
    family = fields.word("model_type") or text_family(outer)
    if family in (*encoders(), *MORE_ENCODERS) and not fields.flag("is_decoder"):
        raise ValueError(f"The field model_type={shown(family)} names an encoder, which has no KV cache to count.")
    refuse_readers(fields, family)
    if family in beside_an_encoder() and fields.flag("is_encoder_decoder", True):
        raise ValueError(
            f"The field model_type={shown(family)} names a decoder beside an encoder; kvviz does not count the keys "
            "and values of its encoder's output."
        )
    for name in (family, outer):
        for start, reason in NOT_COUNTED.items():
            if re.match(rf"{start}(?![a-z])", name):
                raise ValueError(f"The field model_type={shown(name)} names a family that {reason}.")
    return family


def refuse_readers(fields: Fields, family: str) -> None:
    """What writes nothing token by token has no cache, whatever sizes its config names."""
    told = f"The field model_type={shown(family)} names"
    is_encoder = ENCODER_NAME.search(family) and not is_known(family) and not fields.flag("is_decoder")
    if family in others() or is_encoder:
        raise ValueError(f"{told} no language model that writes text on its own, so there is no KV cache to count.")
    if re.match("|".join(SEE_BOTH_WAYS), family) or fields.flag("is_causal") is False:
        raise ValueError(f"{told} a model whose tokens see what follows them, so its keys and values cannot be kept.")
    classes = fields.get("architectures")
    names = [name for name in classes if isinstance(name, str)] if isinstance(classes, list) else []
    if names and all(ENCODER_CLASS.search(name) for name in names) and not fields.flag("is_decoder"):
        raise ValueError(f"The field architectures={shown(names)} names no language model that writes text.")


def differences(fields: Fields) -> list[str]:
    """Where runtimes hold more than the architecture needs: transformers copies shared KV heads before it caches."""
    is_shared = fields.family == "mpt" and fields.get("attention_head_type") not in (None, "multihead_attention")
    if fields.flag("new_decoder_architecture") or is_shared:
        return ["Counted by its KV heads: not every runtime keeps only those, some cache one for each query head."]
    return []

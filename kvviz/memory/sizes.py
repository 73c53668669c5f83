"""What the layers of one kind hold: KV heads, widths and windows, a latent, or a state."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.memory.families import SLIDING_KV_FACTOR
from kvviz.memory.fields import Fields
from kvviz.memory.heads import WIDEST, kv_heads_of, widths_of
from kvviz.memory.shape import Group
from kvviz.memory.states import States
from kvviz.memory.windows import window_of

WITHOUT_KEYS = ("state", "conv")


@dataclass(frozen=True)
class Sizes:
    """Heads and widths of each kind of layer."""

    fields: Fields
    family: str
    heads: int
    kv_heads: int
    key_width: int
    value_width: int
    window: int | None
    states: States

    @classmethod
    def read(cls, fields: Fields, family: str, item_bytes: int) -> Sizes:
        heads = fields.needed("heads", WIDEST)
        kv_heads = kv_heads_of(fields, heads)
        key, value = widths_of(fields, heads)
        states = States(fields, family, heads, key, item_bytes)
        return cls(fields, family, heads, kv_heads, key, value, window_of(fields, family), states)

    def groups(self, kind: str, places: tuple[int, ...]) -> list[Group]:
        """What the layers of one kind hold; nothing where they have no attention at all."""
        if kind == "none":
            return []
        if kind in WITHOUT_KEYS:
            return [Group("state", places, state=self.states.of_kind(kind))]
        if self.fields.get("kv_lora_rank") is not None:
            return self.latent(kind, places)
        if kind == "indexed":
            raise ValueError("The field layer_types names indexed_attention, known to kvviz beside kv_lora_rank only.")
        heads, key, value = self.of_kind(kind)
        window = {"sliding": self.window, "chunked": self.fields.whole("attention_chunk_size")}.get(kind)
        return [Group(kind, places, heads, key, value, window)]

    def of_kind(self, kind: str) -> tuple[int, int, int]:
        """KV heads, key width and value width; sliding and full layers may differ (MiMo, Gemma 4)."""
        whole = self.fields.whole
        if kind == "sliding":
            factor = SLIDING_KV_FACTOR.get(self.family, 1)
            heads = whole("swa_num_key_value_heads", WIDEST) or self.kv_heads * factor
            key = whole("swa_head_dim", WIDEST) or self.key_width
            return heads, key, whole("swa_v_head_dim", WIDEST) or (self.value_width if key == self.key_width else key)
        if kind == "full" and (width := whole("global_head_dim", WIDEST)) is not None:
            own = self.fields.flag("attention_k_eq_v", True)
            return (own and whole("num_global_key_value_heads", WIDEST)) or self.kv_heads, width, width
        return self.kv_heads, self.key_width, self.value_width

    def latent(self, kind: str, places: tuple[int, ...]) -> list[Group]:
        """MLA, and the keys of an indexer where the config has one."""
        if kind not in ("full", "indexed"):
            raise ValueError(f"The config has kv_lora_rank and {kind} layers; kvviz has no formula for both together.")
        latent = self.fields.required("kv_lora_rank", "is the width of the latent")
        rope = self.fields.required("qk_rope_head_dim", "is the part of a latent kept apart for RoPE")
        groups = [Group("mla", places, 1, latent + rope, 0, rope=rope)]
        if kind == "indexed":
            width = self.fields.required("index_head_dim", "is the width of the indexer's key")
            groups.append(Group("indexer", places, 1, width, 0))
        return groups

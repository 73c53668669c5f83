"""What a layer without keys and values holds: a state and the last inputs of a convolution, whatever the length."""

from __future__ import annotations

from dataclasses import dataclass

from kvviz.memory.fields import Fields, is_said
from kvviz.memory.heads import WIDEST
from kvviz.memory.shape import NUMBER_BYTES, State, number_format

MAMBA = ("mamba_d_state", "ssm_state_size", "state_size")
SIZE = "says how large the state of a linear layer is"
INPUTS = "says how many inputs a layer's convolution keeps"
# model types whose linear layers hold one square matrix a head and no convolution (lightning attention), and
# whether that matrix has the number format of the model (MiniMax in transformers) or float32 (Ring, Ling)
LIGHTNING = {"minimax": True, "bailing_moe_linear": False, "bailing_moe_v2_linear": False, "bailing_moe_v2": False}


@dataclass(frozen=True)
class States:
    """The sizes of the layers that do not grow."""

    fields: Fields
    family: str
    heads: int
    key_width: int
    item_bytes: int

    def of_kind(self, kind: str) -> State:
        """The state of a layer of this kind; refused where the fields of no known kind of state are there."""
        if kind == "conv":
            return self.short_convolution()
        for name in MAMBA:
            if is_said(self.fields.get(name)):
                raise ValueError(f"The field {name} describes the state of a layer, which kvviz has no formula for.")
        if self.family in LIGHTNING:
            return self.lightning()
        return self.key_delta() if self.fields.get("linear_num_heads") is not None else self.gated_delta()

    def need(self, name: str, why: str = SIZE) -> int:
        return self.fields.required(name, why)

    @property
    def state_item(self) -> int:
        """A state is float32 unless the config says otherwise."""
        return NUMBER_BYTES[number_format(self.fields.word("mamba_ssm_dtype") or "float32")]

    def gated_delta(self) -> State:
        """Qwen3-Next: n_v · d_k · d_v of state; the convolution reads 2 · n_k · d_k + n_v · d_v numbers a token."""
        keys, values = self.need("linear_num_key_heads"), self.need("linear_num_value_heads")
        key, value = self.need("linear_key_head_dim"), self.need("linear_value_head_dim")
        kernel = self.need("linear_conv_kernel_dim", INPUTS)
        numbers = values * key * value
        return State(numbers, self.state_item, 2 * keys * key + values * value, kernel, self.item_bytes)

    def key_delta(self) -> State:
        """Kimi Linear: n · d² of state; queries, keys and values each pass a convolution, n · d numbers a token."""
        heads, width = self.need("linear_num_heads"), self.need("linear_head_dim")
        kernel = self.need("linear_conv_kernel_dim", INPUTS)
        return State(heads * width * width, self.state_item, 3 * heads * width, kernel, self.item_bytes)

    def lightning(self) -> State:
        """MiniMax and Ring: one d × d matrix for each query head."""
        item = self.item_bytes if LIGHTNING[self.family] else self.state_item
        return State(self.heads * self.key_width**2, item)

    def short_convolution(self) -> State:
        """LFM2: the last inputs of a convolution over the hidden state and nothing else."""
        kernel = self.fields.whole("conv_L_cache", WIDEST) or self.need("conv_L_cache", INPUTS)
        return State(0, 0, self.fields.needed("hidden"), kernel, self.item_bytes)

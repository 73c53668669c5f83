"""The shape of a model as far as its cache goes: groups of layers that are alike."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvviz.knobs import suggestion
from kvviz.memory import formulas

NUMBER_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8": 1, "int8": 1}
SHORT_NAMES = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "f16": "float16"}
SHORT_NAMES |= {"half": "float16", "fp8": "float8", "float8_e4m3fn": "float8", "float8_e5m2": "float8"}
KIND_WORDS = {
    "full": "full attention",
    "sliding": "sliding window",
    "chunked": "chunked attention",
    "mla": "latent attention (MLA)",
    "indexer": "keys of the sparse-attention indexer",
    "state": "constant state, no keys",
}


@dataclass(frozen=True)
class State:
    """What a layer without keys holds of a sequence: the numbers of its state, and a convolution's last inputs."""

    numbers: int
    number_bytes: int
    inputs: int = 0  # numbers of one token that the convolution reads
    kernel: int = 0  # tokens it reads
    input_bytes: int = 0

    @property
    def bytes(self) -> int:
        """As transformers keeps it, the newest token's input among the convolution's."""
        return self.numbers * self.number_bytes + self.inputs * self.kernel * self.input_bytes


@dataclass(frozen=True)
class Group:
    """Layers of one kind and size. MLA and an indexer hold one row a token: one head, a key and no value."""

    kind: str
    places: tuple[int, ...]  # the layers' numbers
    kv_heads: int = 0
    key_width: int = 0
    value_width: int = 0
    window: int | None = None  # tokens a sliding or chunked layer holds at most
    rope: int = 0  # of MLA: how much of the width is the RoPE part
    state: State = State(0, 0)  # of one layer and sequence
    sharing: int = 1  # GPUs that share each state

    @property
    def layers(self) -> int:
        return len(self.places)

    @property
    def state_bytes(self) -> int:
        """Bytes of one layer's state for one sequence, on the fullest GPU."""
        return -(-self.state.bytes // self.sharing)

    @property
    def is_latent(self) -> bool:
        """Whether a token has one row for all heads instead of a key and a value for each."""
        return self.kind in ("mla", "indexer")

    @property
    def row_numbers(self) -> int:
        """Numbers that one token holds in one layer."""
        return self.kv_heads * (self.key_width + self.value_width)


@dataclass(frozen=True)
class Shape:
    """What is known of a model: its groups, its number format, and where that was read."""

    name: str
    groups: tuple[Group, ...]
    query_heads: int
    head_width: int  # channels of one value head, for comparison with ordinary multi-head attention
    dtype: str = "bfloat16"
    longest: int | None = None  # tokens the model was made for
    notes: tuple[str, ...] = ()
    parameters: int | None = None
    source: str = ""
    as_of: str = ""

    @property
    def layers(self) -> int:
        """Layers that hold something of their own; an indexer sits in layers counted already."""
        return sum(group.layers for group in self.groups if group.kind != "indexer")

    def on_each_of(self, gpus: int) -> Shape:
        """What the fullest of several GPUs holds: heads are shared or copied, latents copied, states shared."""
        return replace(self, groups=tuple(sharded(group, self.query_heads, gpus) for group in self.groups))

    def as_multi_head(self) -> Shape:
        """The same model if every query head kept a key and a value of its own, in all layers, for all tokens."""
        places = tuple(place for group in self.groups if group.kind != "indexer" for place in group.places)
        group = Group("full", places, self.query_heads, self.head_width, self.head_width)
        return replace(self, groups=(group,), notes=())


def sharded(group: Group, query_heads: int, gpus: int) -> Group:
    if gpus < 1:
        raise ValueError(f"{gpus} GPUs cannot hold a model; choose at least 1.")
    if group.kind == "state":
        return replace(group, sharing=group.sharing * gpus)
    if group.is_latent:
        return group
    return replace(group, kv_heads=formulas.heads_on_gpu(query_heads, group.kv_heads, gpus))


def number_format(word: str) -> str:
    """The full name of a number format; ValueError lists the choices."""
    name = SHORT_NAMES.get(word.lower(), word.lower()).removeprefix("torch.")
    if name not in NUMBER_BYTES:
        raise ValueError(f"There is no number format {word!r}; {suggestion(word, NUMBER_BYTES)}")
    return name

"""Keys and values held as packed codes: the tensors of a quantised cache."""

from __future__ import annotations

import torch
from torch import Tensor

from kvviz.cache.quantise import Codes, decode_keys, decode_values, encode_keys, encode_values
from kvviz.cache.quantiser import BlockQuantisation
from kvviz.choices.storage import Quantised


class PackedStore:
    """Keys and values of which the older ones are packed codes; nothing else of those is kept."""

    def __init__(self, storage: Quantised) -> None:
        self.keys = PackedKeys(storage)
        self.values = PackedValues(storage)

    def add(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        self.keys.add(keys[0])
        self.values.add(values[0])
        return self.keys.dense()[None], self.values.dense()[None]

    def retain(self, slots: Tensor) -> None:
        self.keys.retain(slots)
        self.values.retain(slots)

    def settle(self, quantisation: BlockQuantisation | None) -> None:
        if quantisation is not None:
            self.keys.encode(quantisation)
            self.values.encode(quantisation)

    @property
    def held(self) -> int:
        return self.keys.held

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.values.nbytes

    @property
    def cold_nbytes(self) -> int:
        return 0


class Packed:
    """Entries of all heads in two pools, exact rows and codes, and for every slot its place in one of them."""

    def __init__(self, storage: Quantised) -> None:
        self.storage = storage
        self.exact: Tensor | None = None  # (m, D)
        self.codes: Codes | None = None
        self.places: Tensor | None = None  # (H, n): a row of ``exact``, or −1 − the place among the coded entries

    @property
    def held(self) -> int:
        return 0 if self.places is None else self.places.shape[1]

    @property
    def nbytes(self) -> int:
        return sum(pool.nbytes for pool in (self.exact, self.codes) if pool is not None)

    @property
    def entries_per_code(self) -> int:
        """How many entries one row of codes holds."""
        return 1

    def decoded(self) -> Tensor:
        """All coded entries, (count, D)."""
        raise NotImplementedError

    def add(self, states: Tensor) -> None:
        """New entries, (H, R, D)."""
        heads, rows, width = states.shape
        if self.exact is None or self.places is None:
            self.exact = states.new_empty(0, width)
            self.places = torch.empty(heads, 0, dtype=torch.long, device=states.device)
        new = torch.arange(heads * rows, device=states.device).view(heads, rows) + len(self.exact)
        self.places = torch.cat([self.places, new], 1)
        self.exact = torch.cat([self.exact, states.reshape(-1, width)])

    def dense(self) -> Tensor:
        """All entries, (H, n, D)."""
        assert self.exact is not None and self.places is not None
        if self.codes is None:
            return self.exact[self.places]
        # coded entries follow the exact rows, so one table serves all places
        table = torch.cat([self.exact, self.decoded()])
        return table[torch.where(self.places < 0, len(self.exact) - 1 - self.places, self.places)]

    def put(self, codes: Codes, places: Tensor) -> Tensor:
        """Append rows of codes; the answer is the places of their entries, (rows · entries_per_code,)."""
        before = 0 if self.codes is None else len(self.codes.packed) * self.entries_per_code
        self.codes = codes if self.codes is None else self.codes.join(codes)
        return -1 - before - places

    def retain(self, slots: Tensor) -> None:
        assert self.places is not None
        self.places = self.places.gather(1, slots)
        self.compact()

    def compact(self) -> None:
        """Free exact rows and rows of codes that no slot points to any more."""
        assert self.exact is not None and self.places is not None
        is_coded = self.places < 0
        used = self.places[~is_coded]
        self.places[~is_coded] = torch.arange(len(used), device=used.device)
        self.exact = self.exact[used]
        if self.codes is None:
            return
        entries = -1 - self.places[is_coded]
        rows, new_rows = (entries // self.entries_per_code).unique(return_inverse=True)
        if len(rows) < len(self.codes.packed):
            self.codes = self.codes.take(rows) if len(rows) else None
            self.places[is_coded] = -1 - (new_rows * self.entries_per_code + entries % self.entries_per_code)


class PackedKeys(Packed):
    """Blocks of ``group`` keys share the scales of their channels."""

    @property
    def entries_per_code(self) -> int:
        return self.storage.group

    def decoded(self) -> Tensor:
        assert self.codes is not None
        return decode_keys(self.codes, self.storage.bits, self.storage.group).flatten(0, 1)

    def encode(self, quantisation: BlockQuantisation) -> None:
        if not len(quantisation.heads):
            return
        assert self.exact is not None and self.places is not None
        heads, slots = quantisation.heads[:, None], quantisation.slots
        blocks = self.exact[self.places[heads, slots]].view(-1, self.storage.group, self.exact.shape[1])
        new = torch.arange(slots.numel(), device=slots.device).view(slots.shape)
        self.places[heads, slots] = self.put(encode_keys(blocks, self.storage.bits), new)
        self.compact()


class PackedValues(Packed):
    """Every value has its own scales, one for each group of channels."""

    def decoded(self) -> Tensor:
        assert self.codes is not None and self.exact is not None
        return decode_values(self.codes, self.storage.bits, self.storage.group, self.exact.shape[1])

    def encode(self, quantisation: BlockQuantisation) -> None:
        assert self.exact is not None and self.places is not None
        chosen = quantisation.new_values
        if not chosen.any():
            return
        codes = encode_values(self.exact[self.places[chosen]], self.storage.bits, self.storage.group)
        new = torch.arange(len(codes.packed), device=self.places.device)
        self.places[chosen] = self.put(codes, new)
        self.compact()

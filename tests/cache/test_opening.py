"""A kind of storage says everything of itself; an unknown one is refused and never counted as something else."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from kvviz.cache.opening import open_quantiser, open_store
from kvviz.choices.setup import Setup
from kvviz.choices.storage import STORAGES, Storage, Widths
from kvviz.memory import Ask, account, preset
from kvviz.run.replay import replay
from tests.tiny import some_ids, tiny

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Thirds(Storage):
    """A kind that nobody has written."""

    is_exact = False


def test_an_unknown_kind_opens_no_store_and_counts_no_bytes() -> None:
    with pytest.raises(TypeError, match="no store for thirds"):
        open_store(Thirds(), CPU)
    with pytest.raises(TypeError, match="no quantiser for thirds"):
        open_quantiser(Thirds(), (1, 1), CPU)
    with pytest.raises(TypeError, match="thirds"):
        replay(tiny("llama"), some_ids(4).tolist(), Setup(storage=Thirds()))
    with pytest.raises(NotImplementedError):
        account(preset("meta-llama/Llama-3.1-8B"), Ask(16, storage=Thirds()))


@pytest.mark.parametrize("name", list(STORAGES))
def test_every_kind_answers_all_questions(name: str) -> None:
    storage, widths = STORAGES[name](), Widths(8, 8, 4)
    assert open_store(storage, CPU).held == 0
    assert (open_quantiser(storage, (1, 1), CPU) is None) == storage.is_exact
    total = storage.layer_bytes(2, widths, 64, 0, 64)
    assert total == 2 * sum(count * size for count, size in storage.head_terms(widths, 64, 0, 64)) > 0
    assert max(storage.fullest_lengths(64, 0, 64)) == 64

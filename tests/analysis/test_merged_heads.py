"""KV heads averaged into one: exact where they were equal, smaller tensors always, the model itself untouched."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

from kvviz.analysis.merged_heads import layers_of, merge_kv_heads
from kvviz.choices.setup import Setup
from kvviz.run.replay import replay
from tests.tiny import some_ids, tiny

IDS = some_ids(24).tolist()


@pytest.mark.parametrize("name", ["llama", "qwen3", "mistral", "gemma3"])
def test_the_cache_is_smaller_and_the_model_is_untouched(name: str) -> None:
    before = {key: value.clone() for key, value in tiny(name).state_dict().items()}
    whole, merged = replay(tiny(name), IDS, Setup()), replay(merge_kv_heads(tiny(name)), IDS, Setup())
    assert whole.cache_bytes == 2 * merged.cache_bytes and merged.kv_heads == 1
    assert not torch.allclose(torch.tensor(whole.nll), torch.tensor(merged.nll))
    assert all(torch.equal(value, before[key]) for key, value in tiny(name).state_dict().items())
    assert tiny(name).config.num_key_value_heads == 2


def test_equal_heads_merge_without_any_loss() -> None:
    model = deepcopy(tiny("llama"))
    for layer in layers_of(model):
        for projection in (layer.k_proj, layer.v_proj):
            projection.weight.data = projection.weight.data.unflatten(0, (2, -1))[:1].expand(2, -1, -1).flatten(0, 1)
    whole, merged = replay(model, IDS, Setup()), replay(merge_kv_heads(model), IDS, Setup())
    assert merged.nll == pytest.approx(whole.nll, abs=1e-9)


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox"])
def test_a_model_without_such_projections_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be merged"):
        merge_kv_heads(tiny(name))

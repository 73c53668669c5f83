from __future__ import annotations

import numpy as np
import pytest
import torch

from kvviz.analysis.sentence_average import averaged_maps, sentences_of
from kvviz.choices.setup import Setup
from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.models import Loaded
from kvviz.run.progress import Cancelled
from kvviz.run.replay import replay
from tests.tiny import some_ids, tiny


def test_the_average_is_that_of_the_maps_taken_one_by_one() -> None:
    """Known fault 142: an average over prompts is shown without what it was taken from."""
    sentences = [some_ids(16, seed=seed).tolist() for seed in range(20)]  # two batches
    mean = averaged_maps(tiny("llama"), sentences)
    places = [(layer, head) for layer in range(3) for head in range(4)]
    traces = [replay(tiny("llama"), ids, Setup(), maps=places) for ids in sentences]
    for layer in range(3):
        expected = np.mean([trace.maps[layer, head] for trace in traces for head in range(4)], axis=0)
        assert mean[layer] == pytest.approx(expected, abs=1e-5, nan_ok=True)
        assert np.nansum(mean[layer], axis=-1) == pytest.approx(1, abs=1e-5)


def test_the_model_runs_on_as_before() -> None:
    model = tiny("llama")
    before = replay(model, some_ids(12).tolist(), Setup()).nll
    averaged_maps(model, [some_ids(16).tolist()])
    assert replay(model, some_ids(12).tolist(), Setup()).nll.tolist() == before.tolist()


def test_a_stop_is_heard_and_no_sentence_is_refused() -> None:
    with pytest.raises(Cancelled):
        averaged_maps(tiny("llama"), [some_ids(16).tolist()], is_cancelled=lambda: True)
    with pytest.raises(ValueError, match="No sentence of 16 tokens"):
        averaged_maps(tiny("llama"), [])


@pytest.mark.real
def test_lower_layers_look_near_and_later_ones_at_the_first_token(smollm2: Loaded) -> None:
    found = sentences_of(smollm2.tokenizer, PRESETS[LONG_TEXT].text()[:20_000], 32)
    assert len(found) == 32 and {len(ids) for ids in found} == {16}
    maps = averaged_maps(smollm2.model, found)
    last = torch.from_numpy(maps[:, -1])
    assert last[:2, 0].mean() < 0.1 and last[:2, -4:].sum(-1).mean() > 0.4
    assert last[12:, 0].mean() > 0.5

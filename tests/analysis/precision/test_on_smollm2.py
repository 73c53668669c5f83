"""Claim 48 on SmolLM2, at the page's own settings: codes change attention scores, and how they are grouped matters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kvviz.analysis.precision.errors import Layers, layer_errors
from kvviz.choices.storage import Int2, Int4, Int8
from kvviz.choices.texts import DEFAULT_TEXT, PRESETS
from kvviz.models import Loaded, tokens

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def found(smollm2: Loaded) -> Layers:
    ids = torch.tensor(tokens.encode(smollm2.tokenizer, PRESETS[DEFAULT_TEXT].text(), 200))
    return layer_errors(smollm2.model, ids, [Int8(), Int4(), Int2()])


def test_codes_move_attention(found: Layers) -> None:
    """Measured at 256 tokens: 0.17 %, 2.9 % and 16 % of the attention."""
    moved = [float(found.errors[name, "channel"].weights.mean()) for name in ("int8", "int4", "int2")]
    assert 0.0005 < moved[0] < 0.005 < 0.01 < moved[1] < 0.06 < 0.08 < moved[2] < 0.3


def test_a_scale_for_each_channel_is_better(found: Layers) -> None:
    """Measured at 256 tokens: keys off by 4.0 % against 9.9 % under int4."""
    for name in ("int8", "int4", "int2"):
        own, shared = (found.errors[name, way].keys.mean() for way in ("channel", "token"))
        assert own < 0.6 * shared


def test_some_channels_are_many_times_the_others(found: Layers) -> None:
    """Measured: 17 times the median in layer 19, KV head 0, channel 23."""
    times = found.sizes / np.median(found.sizes, axis=-1, keepdims=True)
    assert times.max() > 8

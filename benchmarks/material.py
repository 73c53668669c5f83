"""The model and the text that every benchmark uses."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from kvviz.choices.texts import PRESETS
from kvviz.models import Loaded, load, tokens


@cache
def loaded() -> Loaded:
    return load()


@cache
def text_ids(count: int) -> Tensor:
    """The first tokens of the language reference, (count,), on the model's device."""
    content = PRESETS["language-reference"].text()[: 12 * count]
    return torch.tensor(tokens.encode(loaded().tokenizer, content, count), device=loaded().device)

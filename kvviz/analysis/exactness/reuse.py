"""The conditions for reusing a cache: the prefix is read under one of them changed, the rest goes on from its entries.

What is asked for is always the stock model's answer to the whole text in one forward without a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.exactness.compared import Compared, compare, uncached_logits
from kvviz.models.altered import in_format, with_adapter
from kvviz.run.progress import Progress, Watch
from kvviz.run.reading import Reading

MOST_SHIFT = 1024  # positions
FORMATS = ("float32", "bfloat16", "float16")
IsCancelled = Callable[[], bool]


@dataclass(frozen=True)
class Condition:
    """What differs between the run that filled the cache and the one that reuses it; nothing unless said."""

    replaced: tuple[int, int] | None = None  # position and token in the text that the cache was made for
    adapter: float = 0.0  # strength of a change of the attention's weights
    shift: int = 0  # the rest is read so many positions too late
    window: int | None = None  # keys that a query of the prefix saw
    number_format: str | None = None  # in which the prefix was read, such as "bfloat16"


def filled(model: PreTrainedModel, ids: Tensor, prefix: int, condition: Condition) -> Reading:
    """The cache of the prefix, made under the condition, in the model's own number format."""
    given, visible = ids[:prefix].clone(), None
    if condition.replaced is not None:
        given[condition.replaced[0]] = condition.replaced[1]
    if condition.window is not None:
        age = torch.arange(prefix, device=ids.device)[:, None] - torch.arange(prefix, device=ids.device)
        visible = (age >= 0) & (age < condition.window)
    format_of = nullcontext() if condition.number_format is None else in_format(model, dtype_of(condition))
    reading, own = Reading(model), model.dtype
    with with_adapter(model, condition.adapter) if condition.adapter else nullcontext(), format_of:
        reading.read(given, visible=visible)
    reading.to(own)
    return reading


def dtype_of(condition: Condition) -> torch.dtype:
    found: torch.dtype = getattr(torch, str(condition.number_format))
    return found


def reused(
    model: PreTrainedModel,
    ids: Tensor,
    prefix: int,
    condition: Condition,
    uncached: Tensor,
    *,
    rows: int | None = None,
    progress: Progress | None = None,
    is_cancelled: IsCancelled | None = None,
) -> Compared:
    """The rest of the text read on from the prefix's entries, ``rows`` at a time (all at once unless said).

    Raises ValueError for a condition without meaning, and Cancelled when ``is_cancelled`` answers yes between blocks.
    """
    check_condition(condition, prefix)
    watch = Watch(progress, is_cancelled)
    watch.tell(0.0)
    reading = filled(model, ids, prefix, condition)
    logits = continued(reading, ids[prefix:], watch, rows=rows, shift=condition.shift)
    return compare(logits, uncached, prefix)


def check_condition(condition: Condition, prefix: int) -> None:
    """ValueError for a change that cannot be made to a prefix of so many tokens."""
    if condition.replaced is not None and not 0 <= condition.replaced[0] < prefix:
        raise ValueError(
            f"There is no token {condition.replaced[0]} in the prefix to replace: it has the positions 0–{prefix - 1}."
        )
    if not 0 <= condition.adapter <= 1:
        raise ValueError(f"The strength {condition.adapter:g} of the adapter must be from 0 (no change) to 1.")
    if not 0 <= condition.shift <= MOST_SHIFT:
        raise ValueError(f"The shift of {condition.shift} positions must be from 0 (none) to {MOST_SHIFT}.")
    if condition.window is not None and condition.window < 1:
        raise ValueError(f"The window of {condition.window} must hold 1 token at least, the query's own.")
    if condition.number_format not in (None, *FORMATS):
        raise ValueError(f"There is no number format {condition.number_format!r} here; choose one of {FORMATS}.")


def continued(reading: Reading, rest: Tensor, watch: Watch, *, rows: int | None = None, shift: int = 0) -> Tensor:
    """Logits (q, vocabulary) of the rest of a text, each token ``shift`` positions later than its place."""
    answers, prefix = [], reading.fed
    for part in rest.split(rows or len(rest)):
        watch.tell((reading.fed - prefix) / len(rest))
        places = torch.arange(reading.fed, reading.fed + len(part), device=rest.device) + shift
        answers.append(reading.read(part, positions=places))
    return torch.cat(answers)


def in_other_format(
    model: PreTrainedModel, ids: Tensor, prefix: int, number_format: str, *, rows: int | None = None
) -> Compared:
    """Cached against uncached where all of both is computed in another number format."""
    with in_format(model, getattr(torch, number_format)):
        return reused(model, ids, prefix, Condition(), uncached_logits(model, ids, prefix), rows=rows)


def shifted_together(model: PreTrainedModel, ids: Tensor, prefix: int, shift: int, uncached: Tensor) -> Compared:
    """The whole text read ``shift`` positions later: rotary positions know distances alone, so nothing breaks."""
    reading, places = Reading(model), torch.arange(len(ids), device=ids.device) + shift
    reading.read(ids[:prefix], positions=places[:prefix])
    return compare(reading.read(ids[prefix:], positions=places[prefix:]), uncached, prefix)


def conditions(
    *, replaced: tuple[int, int], adapter: float, shift: int, window: int, number_format: str
) -> dict[str, Condition]:
    """One changed at a time, by name."""
    same = Condition()
    return {
        "prefix": replace(same, replaced=replaced),
        "weights": replace(same, adapter=adapter),
        "positions": replace(same, shift=shift),
        "rule": replace(same, window=window),
        "dtype": replace(same, number_format=number_format),
    }


def other_format(dtype: torch.dtype) -> str:
    """A format the model does not compute in."""
    return "bfloat16" if dtype != torch.bfloat16 else "float32"


def other_token(ids: Sequence[int], position: int) -> int:
    """A token of the text that differs from the one at ``position``, its successor if possible."""
    found = next((token for token in [*ids[position + 1 :], *ids[:position]] if token != ids[position]), None)
    return int(found) if found is not None else int(ids[position]) + (1 if ids[position] == 0 else -1)

"""Attention-reading policies a second time: plain lists, one token and one head at a time, no code shared with kvviz.

The stock model is fed token by token; this attention function keeps its own lists of keys, values and past weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask


@dataclass
class Entry:
    """One kept token of one KV head: its key and value, and what weight each later query gave it."""

    position: int
    key: Tensor
    value: Tensor
    weights: dict[int, float] = field(default_factory=dict)  # query → weight, mean over the group
    key_is_coded: bool = False
    value_is_coded: bool = False


@dataclass
class Told:
    """What a rule is told: the layer it decides for, and the sizes of the run."""

    layer: int
    layers: int
    prompt: int


# Which positions stay, given the entries of one head (the newest last) and the newest position.
Rule = Callable[[list[Entry], int, Told], set[int]]


def best(entries: list[Entry], score: Callable[[Entry], float], count: int) -> set[int]:
    """Positions of the highest scores; of equal ones the younger stays."""
    order = sorted(entries, key=lambda e: (score(e), e.position), reverse=True)
    return {e.position for e in order[:count]}


def h2o(budget: int, recent: int, sinks: int = 0, normalise: bool = False) -> Rule:
    def rule(entries: list[Entry], newest: int, told: Told) -> set[int]:
        if len(entries) <= budget:
            return {e.position for e in entries}
        safe = {e.position for e in entries if e.position < sinks or e.position > newest - recent}
        others = [e for e in entries if e.position not in safe]

        def score(e: Entry) -> float:
            total = sum(e.weights.values())
            return total / len(e.weights) if normalise else total

        return safe | best(others, score, budget - len(safe))

    return rule


def attention_window(budget: int, recent: int, observe: int) -> Rule:
    def rule(entries: list[Entry], newest: int, told: Told) -> set[int]:
        if len(entries) <= budget:
            return {e.position for e in entries}
        safe = {e.position for e in entries if e.position > newest - recent}
        others = [e for e in entries if e.position not in safe]
        voters = range(newest - observe, newest)
        return safe | best(others, lambda e: sum(e.weights.get(t, 0.0) for t in voters), budget - len(safe))

    return rule


def tova(budget: int) -> Rule:
    def rule(entries: list[Entry], newest: int, told: Told) -> set[int]:
        if len(entries) <= budget:
            return {e.position for e in entries}
        return {newest} | best(entries[:-1], lambda e: e.weights[newest - 1], budget - 1)

    return rule


def snapkv(budget: int, observe: int, kernel: int, largest: bool = False, beta: int | None = None) -> Rule:
    """Decides after the last prompt token has attended; the caller knows that."""

    def rule(entries: list[Entry], newest: int, told: Told) -> set[int]:
        everything = {e.position for e in entries}
        if newest != told.prompt - 1 or told.prompt <= max(budget, observe):
            return everything
        past, window = entries[: told.prompt - observe], entries[told.prompt - observe :]
        votes = [sum(e.weights[t] for t in range(told.prompt - observe, told.prompt)) for e in past]
        pooled = []
        for i in range(len(votes)):
            near = votes[max(0, i - kernel // 2) : i + kernel // 2 + 1]
            pooled.append(max(near) if largest else sum(near) / len(near))
        room = budget - observe if beta is None else pyramid(budget, observe, beta, told)
        scores = {e.position: p for e, p in zip(past, pooled, strict=True)}
        return {e.position for e in window} | best(past, lambda e: scores[e.position], room)

    return rule


def pyramid(budget: int, observe: int, beta: int, told: Told) -> int:
    """The layer's share beside the window, by giving out the remainders one by one."""
    room, most = budget - observe, told.prompt - observe
    low = room / beta
    high = 2 * room - low
    if high > most:
        high, low = most, 2 * room - most
    shares = [high + (low - high) * layer / (told.layers - 1) for layer in range(told.layers)]
    given = [int(s + 1e-9) for s in shares]
    while sum(given) < told.layers * room:
        left = [round(s - g, 9) for s, g in zip(shares, given, strict=True)]
        given[left.index(max(left))] += 1
    return given[told.layer]


class NaiveRun:
    """Feeds the stock model token by token and keeps, for every layer and KV head, a list of entries."""

    def __init__(
        self,
        model: PreTrainedModel,
        rule: Rule,
        prompt: int,
        after: bool = False,
        store: Callable[[list[Entry]], None] | None = None,
    ):
        self.model, self.rule, self.prompt, self.after, self.store = model, rule, prompt, after, store
        self.entries: dict[tuple[int, int], list[Entry]] = {}
        self.kept: dict[tuple[int, int], list[list[int]]] = {}
        self.newest = -1

    def read(self, ids: Tensor) -> Tensor:
        """Logits (T, vocabulary)."""
        AttentionInterface.register("naive_policy", self.attend)
        AttentionMaskInterface.register("naive_policy", eager_mask)
        before = self.model.config._attn_implementation
        self.model.set_attn_implementation("naive_policy")
        rows = []
        try:
            for self.newest, token in enumerate(ids):
                where = torch.tensor([[self.newest]])
                with torch.inference_mode():
                    output = self.model(input_ids=token.view(1, 1), position_ids=where, use_cache=False)
                rows.append(output.logits[0])
        finally:
            self.model.set_attn_implementation(before)
        return torch.cat(rows)

    def attend(self, module, query, key, value, mask, scaling=None, **_):  # type: ignore[no-untyped-def]
        layers = self.model.config.num_hidden_layers
        told = Told(module.layer_idx, layers, self.prompt)
        heads = key.shape[1]
        group = query.shape[1] // heads
        outputs = []
        for head in range(heads):
            place = (module.layer_idx, head)
            entries = self.entries.setdefault(place, [])
            entries.append(Entry(self.newest, key[0, head, 0], value[0, head, 0]))
            if not self.after:
                entries = self.retain(place, told)
            keys = torch.stack([e.key for e in entries])
            values = torch.stack([e.value for e in entries])
            total = torch.zeros(len(entries), dtype=keys.dtype)
            for member in range(group):
                scores = keys @ query[0, head * group + member, 0] * scaling
                weights = scores.softmax(0)
                outputs.append(weights @ values)
                total = total + weights
            for entry, weight in zip(entries, (total / group).tolist(), strict=True):
                entry.weights[self.newest] = weight
            if self.after:
                entries = self.retain(place, told)
            if self.store is not None:
                self.store(entries)
            self.kept.setdefault(place, []).append([e.position for e in entries])
        return torch.stack(outputs)[None, None], None

    def retain(self, place: tuple[int, int], told: Told) -> list[Entry]:
        stays = self.rule(self.entries[place], self.newest, told)
        self.entries[place] = [e for e in self.entries[place] if e.position in stays]
        return self.entries[place]

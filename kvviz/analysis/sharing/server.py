"""The shared blocks with their entries, and the model that reads over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.exactness.compared import CHUNK, row_gaps
from kvviz.cache.sharing.pool import Full
from kvviz.cache.sharing.sequences import Event, SharedBlocks
from kvviz.cache.sharing.sequences import Sequence as Held
from kvviz.measures.prefixes import Difference
from kvviz.run.reading import Reading
from kvviz.run.replay import clock

Pair = tuple[Tensor, Tensor]  # keys and values (1, H, n, D) of one layer


@dataclass(frozen=True)
class Snapshot:
    """The pool after one step: what was done, the events of it, and every block as (number, references, tokens)."""

    words: str
    prompt: int
    events: tuple[Event, ...]
    blocks: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, eq=False)
class Served:
    """One prompt: how much of it was held already, and how its answers differ from a fresh run's."""

    tokens: int
    hit_tokens: int
    difference: Difference | None
    gaps: NDArray[np.float64]  # (tokens − hit_tokens,) log-probability, nats, of the rows that were computed
    seconds: float  # to read the rest over the shared blocks
    fresh_seconds: float  # to read the whole prompt


@dataclass
class Server:
    """The shared blocks with their entries, and the model that reads over them."""

    model: PreTrainedModel
    block: int
    limit: int | None
    entries: dict[int, list[Pair]] = field(default_factory=dict)  # by block, one pair a layer
    opened: list[Held] = field(default_factory=list)
    steps: list[Snapshot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shared, self.told = SharedBlocks(self.block, self.limit), 0
        self.entry: list[Pair] = []  # of one token

    @property
    def nbytes(self) -> int:
        """Of all tensors held."""
        return sum(part.nbytes for pairs in self.entries.values() for pair in pairs for part in pair)

    def read(self, place: int, ids: Tensor, difference: Difference | None, answers: int) -> Served:
        """Serve one prompt, and compare it with a fresh run."""
        held = self.with_room(place, lambda: self.shared.open(ids.tolist()))
        self.follow()
        started = clock(self.model)
        reading = self.reading(held)
        logits = reading.read(ids[held.hit_tokens :])
        seconds = clock(self.model) - started
        self.keep(held, reading, held.hit_tokens)
        self.opened.append(held)
        self.note(f"Prompt {place + 1} read: {held.hit_tokens} of {len(ids)} tokens were hits", place)
        if answers == 2:
            self.answer(place, held, logits[-1])
        started = clock(self.model)
        fresh = Reading(self.model).read(ids)
        fresh_seconds = clock(self.model) - started
        pairs = zip(logits.split(CHUNK), fresh[held.hit_tokens :].split(CHUNK), strict=True)
        gaps = torch.cat([row_gaps(*pair) for pair in pairs]).cpu().numpy()
        return Served(len(ids), held.hit_tokens, difference, gaps, seconds, fresh_seconds)

    def with_room(self, place: int, work: Callable[[], Held | int]) -> Held:
        """Do what needs blocks; where there are none left, close the oldest open sequence and try again."""
        while True:
            try:
                return work()  # type: ignore[return-value]
            except Full:
                self.follow()
                oldest = self.opened.pop(0)
                self.shared.close(oldest)
                self.note("A prompt was closed, for room is needed", place)

    def reading(self, held: Held) -> Reading:
        """A reading that holds the entries of the hits."""
        reading = Reading(self.model)
        hits = [self.entries[number] for number in held.blocks[: held.hit_tokens // self.block]]
        if hits:
            reading.hold([cat([pairs[layer] for pairs in hits]) for layer in range(len(hits[0]))])
        return reading

    def keep(self, held: Held, reading: Reading, first: int) -> None:
        """Put the new entries of a reading into the sequence's blocks, from token ``first`` on."""
        layers = reading.entries()
        self.entry = [(keys[:, :, :1], values[:, :, :1]) for keys, values in layers]
        for place in range(first // self.block, len(held.blocks)):
            part = slice(place * self.block, (place + 1) * self.block)
            self.entries[held.blocks[place]] = [
                (keys[:, :, part].clone(), values[:, :, part].clone()) for keys, values in layers
            ]

    def answer(self, place: int, held: Held, logits: Tensor) -> None:
        """Fork the prompt and let both write one token: blocks that both hold are copied first."""
        other = self.shared.fork(held)
        self.opened.append(other)
        self.note(f"Prompt {place + 1} forked: both answers hold all its blocks", place)
        for name, sequence, token in zip(
            ("first", "second"), (held, other), logits.topk(2).indices.tolist(), strict=True
        ):
            self.opened = [one for one in self.opened if one is not sequence]  # it is written to, and not closed
            self.with_room(place, lambda s=sequence, t=token: self.shared.append(s, t))  # type: ignore[misc]
            self.opened.append(sequence)
            self.follow()
            self.write(sequence, token)
            self.note(f"Its {name} answer wrote a token", place)

    def write(self, sequence: Held, token: int) -> None:
        """Compute the entry of the token that was appended, over the blocks before it."""
        reading, before = Reading(self.model), len(sequence.tokens) - 1
        pairs = [self.entries[number] for number in sequence.blocks if number in self.entries]
        layers = [cat([block[layer] for block in pairs]) for layer in range(len(pairs[0]))]
        reading.hold([(keys[:, :, :before], values[:, :, :before]) for keys, values in layers])
        reading.read([token])
        self.keep(sequence, reading, before)

    def follow(self) -> None:
        """Do to the tensors what the bookkeeping has done to the blocks."""
        for event in self.shared.events[self.told :]:
            if event.kind in ("evict", "free"):
                self.entries.pop(event.block, None)
            elif event.kind == "copy" and event.source is not None:
                self.entries[event.block] = [(k.clone(), v.clone()) for k, v in self.entries[event.source]]
        self.told = len(self.shared.events)

    def note(self, words: str, place: int) -> None:
        """Write down a step; the events since the last one belong to it."""
        self.follow()
        before = sum(len(step.events) for step in self.steps)
        blocks = sorted(self.shared.pool.blocks.values(), key=lambda one: one.number)
        state = tuple((one.number, one.references, len(one.tokens)) for one in blocks)
        self.steps.append(Snapshot(words, place, tuple(self.shared.events[before:]), state))


def cat(pairs: Sequence[Pair]) -> Pair:
    """The entries of several blocks one after another."""
    keys, values = zip(*pairs, strict=True)
    return torch.cat(keys, 2), torch.cat(values, 2)

"""Prompts served one after another over shared blocks: the model reads only what is no hit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.exactness.reuse import CHUNK, row_gaps
from kvviz.cache.sharing.pool import Full
from kvviz.cache.sharing.sequences import Event, SharedBlocks
from kvviz.cache.sharing.sequences import Sequence as Held
from kvviz.measures.prefixes import Difference, first_difference
from kvviz.run.progress import Progress, Watch
from kvviz.run.reading import Reading
from kvviz.run.replay import checked_ids, clock
from kvviz.text.counting import plural

MOST_BLOCK = 256  # tokens
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


@dataclass(frozen=True, eq=False)
class Sharing:
    """All prompts, the pool step by step, and what the tensors hold."""

    prompts: tuple[Served, ...]
    steps: tuple[Snapshot, ...]
    block: int
    bytes_alone: int  # keys and values of every prompt by itself
    bytes_shared: int  # of the blocks that are held at the end, part-filled ones by the tokens in them

    @property
    def blocks(self) -> int:
        """Held at the end."""
        return len(self.steps[-1].blocks)

    @property
    def largest_gap(self) -> float:
        return max(float(one.gaps.max()) for one in self.prompts)

    @property
    def nbytes(self) -> int:
        return (
            200 * len(self.prompts)
            + sum(one.gaps.nbytes for one in self.prompts)
            + 30 * sum(len(step.blocks) + len(step.events) for step in self.steps)
        )


def serve(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    *,
    block: int = 16,
    limit: int | None = None,
    answers: int = 1,
    progress: Progress | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Sharing:
    """Read every prompt over the blocks of those before it, and freshly, and compare.

    A prompt stays open until room is needed; then the oldest ones are closed, and their blocks evicted. With two
    ``answers`` each prompt is forked, and both write a token: the likeliest, and the next. Raises ValueError for empty
    prompts, a block size or a budget without meaning; Cancelled when ``is_cancelled`` answers yes between prompts.
    """
    ids = [checked(model, tokens, place) for place, tokens in enumerate(prompts)]
    check_sizes([len(one) for one in ids], block, limit, answers)
    watch, server = Watch(progress, is_cancelled), Server(model, block, limit)
    found = []
    for place, tokens in enumerate(ids):
        watch.tell(place / len(ids))
        found.append(server.read(place, tokens, first_difference(prompts, place), answers))
    each = sum(one.nbytes for pair in server.entry for one in pair)
    alone = each * sum(len(one) for one in ids)
    return Sharing(tuple(found), tuple(server.steps), block, alone, server.nbytes)


def checked(model: PreTrainedModel, tokens: Sequence[int], place: int) -> Tensor:
    if not len(tokens):
        raise ValueError(f"Prompt {place + 1} is empty; write at least one word, or leave it out.")
    return checked_ids(model, tokens)


def check_sizes(lengths: Sequence[int], block: int, limit: int | None, answers: int) -> None:
    """ValueError for blocks or a budget that no prompt, or not every prompt, fits into."""
    if not lengths:
        raise ValueError("There is no prompt; give at least one.")
    if not 1 <= block <= MOST_BLOCK:
        raise ValueError(f"Blocks of {block} tokens are not possible; choose from 1 to {MOST_BLOCK}.")
    if answers not in (1, 2):
        raise ValueError(f"{answers} answers to a prompt are not possible; choose 1 or 2.")
    for place, tokens in enumerate(lengths):
        needed = -(-tokens // block) + (0 if answers == 1 else 1 if tokens % block else 2)
        if limit is not None and needed > limit:
            raise ValueError(
                f"Prompt {place + 1} needs {plural(needed, 'block')} of {block} and the budget is {limit}; choose a "
                f"budget of at least {needed}, or 0 for none."
            )


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

"""Greedy decoding with draft trees: each is verified in one forward, the accepted path stays in the cache.

Only with the full cache: a policy that evicts would have to decide about tokens that are never written. Source of the
tree mask: Miao et al., SpecInfer, 2024; Cai et al., Medusa, 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.drafts.drafters import DRAFTERS, by_first_layers, check_layers, looked_up
from kvviz.analysis.drafts.plain import agreeing, cache_gap, decoded, margin_at
from kvviz.analysis.drafts.tree import ROOT, Tree, check_shape
from kvviz.analysis.exactness.compared import LEAST_ALLOWED, allowed_gap, row_gaps, stock_gap, uncached_logits
from kvviz.choices.setup import Setup
from kvviz.knobs import suggestion
from kvviz.run import attention
from kvviz.run.generate import check_learned, check_sampling
from kvviz.run.progress import Progress, Watch
from kvviz.run.reading import Attended, Reading
from kvviz.run.refusals import refuse_beyond_trained
from kvviz.run.replay import checked_ids

ROUNDINGS = 100  # of a number's last digit that a key or value may be off, as a share of the largest one
Cut = Callable[[Sequence[int]], tuple[int, ...]]


@dataclass(frozen=True)
class Drafter:
    """How trees are drafted: ``layers`` counts for the drafter of that name alone."""

    name: str = "lookup"
    width: int = 4
    depth: int = 4
    layers: int = 24

    def check(self, model: PreTrainedModel) -> None:
        """ValueError in one sentence for a drafter that is not there, or a tree without meaning."""
        if self.name not in DRAFTERS:
            raise ValueError(f"There is no drafter {self.name!r}; {suggestion(self.name, DRAFTERS)}")
        check_shape(self.width, self.depth)
        if self.name == "layers":
            check_layers(model, self.layers)

    def draft(self, reading: Reading, ids: Sequence[int]) -> Tree:
        """The tree after a text whose last token is not in the cache yet."""
        if self.name == "lookup":
            return looked_up(ids, self.width, self.depth)
        return by_first_layers(reading.model, reading, int(ids[-1]), self.layers, self.width, self.depth)


@dataclass(frozen=True, eq=False)
class Step:
    """One tree and what became of it. Rows: the root (the last token written), then the nodes."""

    cached: int  # tokens in the cache before
    root: int
    tree: Tree
    accepted: tuple[int, ...]  # nodes whose tokens were written, from the root on
    written: tuple[int, ...]  # their tokens, and the one that the model adds, unless the text ends before
    weights: NDArray[np.float32]  # (A, R, R) of the rows on each other, in one layer
    on_cache: NDArray[np.float32]  # (A, R) of the rows on all that was cached before

    @property
    def kept(self) -> tuple[int, ...]:
        """Rows whose entries stay, one for each token written: the last of those is the next root, and not read yet."""
        return (0, *(node + 1 for node in self.accepted[: len(self.written) - 1]))


@dataclass(frozen=True, eq=False)
class Speculation:
    """A text written with drafts, beside plain greedy decoding."""

    prompt_tokens: int
    token_ids: tuple[int, ...]  # the new ones
    greedy_token_ids: tuple[int, ...]
    steps: tuple[Step, ...]
    largest_gap: float  # log-probability, nats, over the rows whose token was written the same in both
    cache_gap: float  # the largest difference of a key's or value's number, as a share of the largest number
    margin: float | None  # where both part: how far plain decoding's first and second choice lie apart, nats
    allowed_gap: float  # nats that another order of the same sums may change
    allowed_cache_gap: float  # the same of the cache

    @property
    def is_equal(self) -> bool:
        return self.token_ids == self.greedy_token_ids

    @property
    def is_exact(self) -> bool:
        """Whether text, log-probabilities and cache are those of plain decoding but for rounding."""
        within = self.largest_gap <= self.allowed_gap and self.cache_gap <= self.allowed_cache_gap
        return self.is_equal and within

    @property
    def accepted(self) -> list[int]:
        """Drafted tokens that were accepted, step by step."""
        return [len(step.accepted) for step in self.steps]

    @property
    def nbytes(self) -> int:
        return sum(step.weights.nbytes + step.on_cache.nbytes for step in self.steps) + 64 * len(self.token_ids)


def speculate(
    model: PreTrainedModel,
    prompt_ids: Sequence[int],
    drafter: Drafter,
    max_new_tokens: int,
    *,
    stop_at: Collection[int] = (),
    layer: int = 0,
    progress: Progress | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Speculation:
    """Write after a prompt with draft trees, and again without; weights are kept of one ``layer``.

    Raises ValueError for input without meaning and Cancelled when ``is_cancelled`` answers yes between steps.
    """
    ids = checked_ids(model, prompt_ids)
    check_sampling(max_new_tokens, 0.0, 1.0, 0)
    check_learned(model, len(ids), max_new_tokens)
    drafter.check(model)
    furthest = max_new_tokens + drafter.depth  # a branch may reach past the last token that is written
    refuse_beyond_trained(model, Setup(), len(ids) + furthest, len(ids))
    watch = Watch(progress, is_cancelled)
    plain = decoded(model, ids, max_new_tokens, stop_at, watch)
    reading, gaps, steps = Reading(model), [], []
    if len(ids) > 1:
        reading.read(ids[:-1])
    text, new = ids.tolist(), 0
    while new < max_new_tokens and not (new and text[-1] in stop_at):
        watch.tell(0.5 + 0.5 * new / max_new_tokens)
        tree, room = drafter.draft(reading, text), max_new_tokens - new
        step, logits = verified(reading, tree, text[-1], layer, partial(cut, room=room, stop_at=stop_at))
        written = step.written
        shared = agreeing(plain.token_ids[new:], written) if text[len(ids) :] == [*plain.token_ids[:new]] else 0
        if shared:
            rows = logits[list(step.kept)][:shared]
            gaps.append(float(row_gaps(rows, plain.logits[new : new + shared]).max()))
        steps.append(step)
        text, new = [*text, *written], new + len(written)
    found = tuple(text[len(ids) :])
    return Speculation(
        len(ids),
        found,
        plain.token_ids,
        tuple(steps),
        max(gaps, default=0.0),
        cache_gap(reading, plain.run, len(ids) + agreeing(found, plain.token_ids) - 1),
        margin_at(plain, found),
        allowed_for(model, text, max(gaps, default=0.0)),
        ROUNDINGS * torch.finfo(model.dtype).eps,
    )


def allowed_for(model: PreTrainedModel, text: Sequence[int], gap: float) -> float:
    """What rounding may change in log-probability, nats; the stock model's own two ways are asked where it matters."""
    if gap <= LEAST_ALLOWED or len(text) < 3:
        return LEAST_ALLOWED
    ids, prefix = torch.tensor(text, device=model.device), len(text) // 2
    return allowed_gap(model, stock_gap(model, ids, prefix, uncached_logits(model, ids, prefix)))


def verified(reading: Reading, tree: Tree, root: int, layer: int, ended: Cut) -> tuple[Step, Tensor]:
    """Read the root and the whole tree in one forward, and keep the entries of the accepted path alone.

    ``ended`` says how many of the tokens are written. Returns the step and the logits (R, vocabulary) of its rows.
    """
    cached, base = reading.held, reading.fed
    found: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []

    def watch(index: int, given: Attended) -> None:
        if index == layer:
            found.append(own_weights(given, cached))

    reading.watcher = watch
    places = torch.tensor([0, *tree.depths], device=reading.device) + base
    mask = tree.mask(cached).to(reading.device)
    logits = reading.read([root, *tree.tokens], positions=places, visible=mask, order=places)
    reading.watcher = None
    accepted, path = walked(tree, logits.argmax(-1).tolist())
    written = ended(path)
    accepted = accepted[: len(written)]
    step = Step(cached, root, tree, accepted, written, *found[0])
    kept = torch.tensor([*range(cached), *(cached + row for row in step.kept)], device=reading.device)
    reading.keep(kept)
    reading.fed = base + len(step.kept)
    return step, logits


def walked(tree: Tree, likeliest: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """From the root on: the nodes that carry the likeliest token, and all tokens written, the last one not drafted."""
    node = ROOT
    accepted: list[int] = []
    written: list[int] = []
    while True:
        token = int(likeliest[node + 1])
        written.append(token)
        child = tree.child(node, token)
        if child is None:
            return tuple(accepted), tuple(written)
        accepted.append(child)
        node = child


def own_weights(given: Attended, cached: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weights of the block's rows on each other (A, R, R), and all of theirs on what was cached (A, R)."""
    weights = attention.weights_of(
        attention.scores(given.query, given.key, given.rule), given.visible[None], given.rule
    ).flatten(0, 1)
    own, before = weights[..., cached:], weights[..., :cached].sum(-1)
    return own.float().cpu().numpy(), before.float().cpu().numpy()


def cut(path: Sequence[int], room: int, stop_at: Collection[int]) -> tuple[int, ...]:
    """What is written of a step: up to the limit, and up to a token that ends the text."""
    found = tuple(path[:room])
    ends = [place for place, token in enumerate(found) if token in stop_at]
    return found[: ends[0] + 1] if ends else found

"""Prompts served one after another over shared blocks: the model reads only what is no hit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor
from transformers import PreTrainedModel

from kvviz.analysis.sharing.server import Served, Server, Snapshot
from kvviz.measures.prefixes import first_difference
from kvviz.run.progress import Progress, Watch
from kvviz.run.replay import checked_ids
from kvviz.text.counting import plural

MOST_BLOCK = 256  # tokens


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
    needs = [-(-tokens // block) + (0 if answers == 1 else 1 if tokens % block else 2) for tokens in lengths]
    needed = max(needs)
    if limit is not None and needed > limit:
        raise ValueError(
            f"Prompt {needs.index(needed) + 1} needs {plural(needed, 'block')} of {block} and the budget is {limit}; "
            f"choose a budget of at least {needed}, or none."
        )

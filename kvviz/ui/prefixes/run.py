"""The prompts of the page, served over shared blocks: what is asked of the worker and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.choices.linked_text import Text
from kvviz.choices.prompts import PROMPT_SETS, separate
from kvviz.choices.setup import Setup
from kvviz.ui.prefixes.settings import PrefixesSettings
from kvviz.ui.quality.common import model_for
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.runs import TOKENS_ON_A_PAGE, Key
from kvviz.ui.shell.settings import PASTE
from kvviz.ui.shell.state import View

if TYPE_CHECKING:
    from kvviz.analysis.sharing.serve import Sharing


@dataclass(frozen=True, eq=False)
class Shared:
    """The prompts, their tokens and how those are written, and what became of them."""

    sharing: Sharing
    tokens: tuple[tuple[int, ...], ...]
    labels: tuple[tuple[str, ...], ...]  # of each prompt's tokens, every sign visible
    pieces: tuple[tuple[str, ...], ...]  # the same as they are in the text

    @property
    def nbytes(self) -> int:
        return self.sharing.nbytes + 200 * sum(map(len, self.tokens))


def prompts_of(view: View) -> list[str]:
    """The prompts that are chosen; ValueError in one sentence where the pasted ones cannot be read."""
    chosen = view.of(PrefixesSettings)
    if chosen.chosen != PASTE:
        return list(PROMPT_SETS[chosen.chosen].prompts)
    found = separate(chosen.pasted)
    if not found:
        raise ValueError("There is no prompt yet: write or paste at least two, with a line of --- between them.")
    return found


def share_job(view: View) -> tuple[Key, Callable[[Job], Result]]:
    """All prompts one after another."""
    chosen, model, texts = view.of(PrefixesSettings), view.experiment.model, prompts_of(view)
    answers = 2 if chosen.forks else 1

    def compute(job: Job) -> Result:
        from kvviz.analysis.sharing.serve import serve
        from kvviz.models import tokens

        loaded = model_for(model, [Setup()], job)
        ids = [tuple(tokens.encode(loaded.tokenizer, text, 10**9)) for text in texts]
        refuse_long(ids)
        found = serve(
            loaded.model,
            ids,
            block=chosen.block,
            limit=chosen.limit or None,
            answers=answers,
            progress=lambda share: job.report(f"{loaded.card.title} reads the prompts, shared and freshly", share),
            is_cancelled=job.is_unwanted,
        )
        labels = tuple(tuple(tokens.labels(loaded.tokenizer, one)) for one in ids)
        pieces = tuple(tuple(p.decode("utf-8", "replace") for p in tokens.pieces(loaded.tokenizer, one)) for one in ids)
        shared = Shared(found, tuple(ids), labels, pieces)
        return Result(shared, shared.nbytes)

    hashes = tuple(Text(text).sha256 for text in texts)
    return ("prefixes", model, *hashes, chosen.block, chosen.limit, answers), compute


def refuse_long(ids: list[tuple[int, ...]]) -> None:
    for place, one in enumerate(ids):
        if len(one) > TOKENS_ON_A_PAGE:
            raise ValueError(
                f"Prompt {place + 1} has {len(one):,} tokens and the pages read at most {TOKENS_ON_A_PAGE:,}; shorten "
                "it."
            )

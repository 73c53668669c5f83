"""Speculation on the prompt: what is asked of the worker, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvviz.choices.setup import Setup
from kvviz.ui.branches.settings import DRAFTER_WORDS, BranchesSettings
from kvviz.ui.quality.common import first_tokens, model_for
from kvviz.ui.quality.scored import text_key
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.runs import TOKENS_ON_A_PAGE, Key
from kvviz.ui.shell.state import View

if TYPE_CHECKING:
    from kvviz.analysis.drafts.cost import TreeCost
    from kvviz.analysis.drafts.speculation import Drafter, Speculation, Step


@dataclass(frozen=True, eq=False)
class Drafted:
    """A text written with drafts, and how its tokens are written."""

    found: Speculation
    labels: dict[int, str]  # of every token id that occurs
    prompt: tuple[int, ...]  # token ids
    text: str  # what was written
    layer: int  # whose weights were kept
    count_from: int

    @property
    def nbytes(self) -> int:
        return self.found.nbytes + 80 * len(self.labels) + 8 * len(self.prompt)

    def step(self, chosen: int | None) -> int:
        """The step to show: the one chosen, else the first one that accepted most."""
        accepted = self.found.accepted
        if chosen is not None:
            return min(chosen, len(accepted) - 1)
        return accepted.index(max(accepted))

    def before(self, step: Step) -> list[int]:
        """The tokens cached before a step."""
        return [*self.prompt, *self.found.token_ids][: step.cached]


def drafter_of(chosen: BranchesSettings) -> Drafter:
    from kvviz.analysis.drafts.speculation import Drafter

    return Drafter(chosen.drafter, chosen.width, chosen.depth, chosen.layers)


def how(chosen: BranchesSettings) -> Key:
    """What a tree depends on; the number of layers only where layers draft."""
    return (chosen.drafter, chosen.width, chosen.depth, chosen.layers if chosen.drafter == "layers" else None)


def prompt_of(view: View) -> tuple[int, ...]:
    """The tokens of the prompt: the text on the left up to where it ends."""
    experiment = view.experiment
    count = min(experiment.tokens, TOKENS_ON_A_PAGE)
    ids = first_tokens(experiment.model, experiment.text.content, count)
    return ids[: min(experiment.prompt_tokens or max(1, len(ids) // 2), len(ids))]


def draft_job(view: View) -> tuple[Key, Callable[[Job], Result]]:
    """The prompt continued with drafts and without."""
    chosen, experiment = view.of(BranchesSettings), view.experiment

    def compute(job: Job) -> Result:
        from kvviz.analysis.drafts.speculation import speculate
        from kvviz.models.tokens import labels, stop_tokens

        loaded = model_for(experiment.model, [Setup()], job)
        prompt = prompt_of(view)
        layers = loaded.model.config.get_text_config(decoder=True).num_hidden_layers
        layer = min(view.layer, layers - 1)
        doing = f"{loaded.card.title} writes plainly and with drafts by {DRAFTER_WORDS[chosen.drafter]}"
        found = speculate(
            loaded.model,
            prompt,
            drafter_of(chosen),
            chosen.new,
            stop_at=stop_tokens(loaded.model, loaded.tokenizer),
            layer=layer,
            progress=lambda share: job.report(doing, share),
            is_cancelled=job.is_unwanted,
        )
        seen = sorted({*prompt, *found.token_ids, *(token for step in found.steps for token in step.tree.tokens)})
        names = dict(zip(seen, labels(loaded.tokenizer, seen), strict=True))
        text = str(loaded.tokenizer.decode(list(found.token_ids)))
        drafted = Drafted(found, names, prompt, text, layer, experiment.text.count_from)
        return Result(drafted, drafted.nbytes)

    return ("draft", *text_key(experiment), *how(chosen), chosen.new, view.layer), compute


def cost_job(view: View, step: int, drafted: Drafted) -> tuple[Key, Callable[[Job], Result]]:
    """One forward of the shown step's tree beside as many single steps, timed on this machine."""
    from kvviz.ui.speed.steps import machine

    tree_step = drafted.found.steps[step]
    ids = (*drafted.before(tree_step), tree_step.root)

    def compute(job: Job) -> Result:
        import torch

        from kvviz.analysis.drafts.cost import tree_cost

        loaded = model_for(view.experiment.model, [Setup()], job)
        job.report("timing the tree and single steps in turns", 0.1)
        given = torch.tensor(ids, device=loaded.model.device)
        found: TreeCost = tree_cost(loaded.model, given, tree_step.tree, is_cancelled=job.is_unwanted)
        return Result(found)

    chosen = view.of(BranchesSettings)
    return ("draft-cost", *text_key(view.experiment), *how(chosen), chosen.new, step, *machine()), compute

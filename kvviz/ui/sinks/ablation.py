"""The sink ablation of the Sinks page: what is asked of the worker, and what is said of its outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kvviz.figures import Drawing
from kvviz.figures.bars import bars
from kvviz.ui.shell import runs
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.runs import Key, Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plural

if TYPE_CHECKING:
    from kvviz.analysis.sink_ablation import Outcome

COMMON_BUDGET = 64  # where neither policy has one below the text's length


def ablation_budget(view: View, tokens: int, sinks: int) -> int:
    """The budget of A, or of B, where it is below the text and leaves room beside the sinks; else a common one."""
    budgets = [setup.policy.size for setup in (view.experiment.setup, view.versus)]
    small = [budget for budget in budgets if budget is not None and sinks < budget < tokens]
    return small[0] if small else min(COMMON_BUDGET, max(sinks + 1, tokens // 4))


def ablation_job(view: View, run: Run, sinks: int) -> tuple[Key, Callable[[Job], Result]]:
    """The ablation on this text: its key and how to compute it."""
    experiment, prompt = view.experiment, run.trace.prompt_tokens
    budget = ablation_budget(view, run.trace.tokens, sinks)

    def compute(job: Job) -> Result:
        # imports torch and transformers, which takes seconds: the controls are there before
        from kvviz.analysis.sink_ablation import ablate_sinks

        loaded = runs.loaded_model(experiment.model, job.tell)
        (line_break,) = loaded.tokenizer.encode("\n", add_special_tokens=False)[:1]
        outcomes = ablate_sinks(
            loaded.model,
            run.trace.token_ids.tolist(),
            budget=budget,
            sinks=sinks,
            prompt_tokens=prompt,
            line_break=line_break,
            progress=job.report,
            is_cancelled=job.is_unwanted,
        )
        return Result(outcomes, 1000)

    return ("sink-ablation", experiment.model, run.trace.token_ids.tobytes(), budget, sinks, prompt), compute


def ablation_words(outcomes: Sequence[Outcome], model: str, sinks: int) -> str:
    """What was seen, for this model and this text."""
    full, window, streaming, breaks, abstaining, abstaining_window = (outcome.loss for outcome in outcomes)
    lost, repaired = window - full, window - breaks
    share = repaired / lost if lost > 0.02 else 0.0
    verdict = "mostly their position" if share > 0.5 else "not only their position"
    repaired_words = f"{share:.0%}" if share > 0 else "nothing"
    budget = outcomes[1].setup.policy.budget  # type: ignore[attr-defined]
    if lost <= 0.02:
        seen = f"losing the first tokens hardly matters here ({lost:+.3f} nats)"
    else:
        seen = (
            f"a window of {budget} changes the loss per token by {lost:+.3g} nats; keeping the first "
            f"{plural(sinks, 'token')} within the same budget, by {streaming - full:+.3g} nats; with line breaks in "
            f"their place, by {breaks - full:+.3g} nats, which repairs {repaired_words} of the damage, so it "
            f"is {verdict} that matters"
        )
    return (
        f"{model} on this text, with {budget} entries where the cache is limited: {seen}. "
        f"The off-by-one softmax changes the loss by {abstaining - full:+.3g} nats with the full cache and by "
        f"{abstaining_window - window:+.3g} nats with the window."
    )


def ablation_figure(outcomes: Sequence[Outcome]) -> Drawing:
    """The loss of every row."""
    names, losses = [outcome.name for outcome in outcomes], [outcome.loss for outcome in outcomes]
    return drawn(bars, names, losses, unit="nats per token", axis="loss after the prompt")

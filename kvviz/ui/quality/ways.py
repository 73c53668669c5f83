"""Four ways to read a text that is longer than the window: their loss, their time and what they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from kvviz.choices.setup import Setup
from kvviz.figures.bars import bars
from kvviz.policies.full import Full
from kvviz.policies.recompute import Recompute
from kvviz.policies.streaming import SINKS, Streaming
from kvviz.policies.window import Window
from kvviz.ui.quality.common import Result, has_losses, late_loss
from kvviz.ui.shell import runs as shared
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job
from kvviz.ui.shell.runs import Key, Run
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plural

COMMON_BUDGET = 64  # where neither A nor B has one below the text's length


def draw(view: View, runs: tuple[Run, Run]) -> None:
    """Dense, window, window read anew, sinks and window: what each loses, takes and holds."""
    if not has_losses(runs[0].trace):
        st.info("No token comes after the prompt, so there is nothing to score: end the prompt earlier.")
        return
    tokens = runs[0].trace.tokens
    budgets = [run.trace.setup.policy.size for run in runs]
    budget = next((size for size in budgets if size is not None and 2 <= size < tokens), min(COMMON_BUDGET, tokens))
    if found := waiting.extra(*ways_job(view, runs[0], max(2, budget)), st.empty()):
        result: list[Way] = found.value
        st.markdown(way_words(result, tokens), help=meaning("loss"))
        names = [way.name for way in result]
        left, right = st.columns(2)
        with left:
            losses = [way.loss for way in result]
            show(drawn(bars, names, losses, unit="nats a token", axis="loss after the prompt"), "ways-loss")
        with right:
            times = [1000 * way.seconds / tokens for way in result]
            show(drawn(bars, names, times, unit="ms a token", axis="time to read the text"), "ways-time")
        rows = "\n".join(f"| {way.name} | {way.cost} | {way.cache_bytes / 2**20:.3g} MiB |" for way in result)
        st.markdown(f"| way | cost for T tokens, window L | held at the end |\n|---|---|---|\n{rows}")


@dataclass(frozen=True)
class Way:
    """One of the four ways to read a long text."""

    name: str
    cost: str  # with T the text, L the window
    setup: Setup
    loss: float  # nats a token after the prompt
    seconds: float  # of the whole pass
    cache_bytes: int


def ways_of(budget: int) -> list[tuple[str, str, Setup]]:
    """The sources' four: dense, window, window read anew, sinks and window."""
    return [
        ("dense", "O(T²) in all, T entries held", Setup(Full())),
        ("window", "O(T·L), L entries held", Setup(Window(budget))),
        ("window with re-computation", "O(T·L²), nothing held", Setup(Recompute(budget))),
        ("sinks and window (StreamingLLM)", "O(T·L), L entries held", Setup(Streaming(budget, min(SINKS, budget - 1)))),
    ]


def ways_job(view: View, run: Run, budget: int) -> tuple[Key, Callable[[Job], Result]]:
    """The four ways on this text, with one budget."""
    ids, prompt = run.trace.token_ids, run.trace.prompt_tokens

    def compute(job: Job) -> Result:
        from kvviz.run.replay import replay

        loaded, found = shared.loaded_model(view.experiment.model, job.tell), []
        ways = ways_of(budget)
        for place, (name, cost, setup) in enumerate(ways):

            def tell(share: float, place: int = place, name: str = name) -> None:
                job.report(f"{place + 1} of {len(ways)}: {name}", (place + share) / len(ways))

            options = {"prompt_tokens": prompt, "progress": tell, "is_cancelled": job.is_unwanted}
            trace = replay(loaded.model, ids.tolist(), setup, **options)  # type: ignore[arg-type]
            found.append(Way(name, cost, setup, late_loss(trace), trace.seconds, trace.cache_bytes))
        return Result(found)

    return ("ways", view.experiment.model, prompt, budget, ids.tobytes()), compute


def way_words(found: list[Way], tokens: int) -> str:
    """What the four ways lose and take."""
    dense, window, anew, sinks = found
    entries = plural(window.setup.policy.size or 0, "entry")
    return (
        f"With {entries} the window loses {window.loss - dense.loss:.3g} nats a token to the full cache, read anew for "
        f"every token {anew.loss - dense.loss:.3g}, with sinks {sinks.loss - dense.loss:.3g}. Reading anew took "
        f"{anew.seconds / sinks.seconds:.3g} times as long for {plural(tokens, 'token')}."
    )

"""Four ways to read a text that is longer than the window: who sees whom, what it costs, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.choices.experiment import Experiment
from kvviz.choices.setup import Setup
from kvviz.figures.attention import visibility
from kvviz.figures.bars import bars
from kvviz.policies.full import Full
from kvviz.policies.recompute import Recompute
from kvviz.policies.streaming import SINKS, Streaming
from kvviz.policies.window import Window
from kvviz.ui.quality.common import means_after
from kvviz.ui.quality.scored import read_under, scored_text, text_key
from kvviz.ui.shell import runs, waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.page import Page
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plain, plural

if TYPE_CHECKING:
    from kvviz.run.trace import Trace

COMMON_BUDGET = 64  # where neither A nor B has one below the text's length
MASK_TOKENS, MASK_BUDGET, MASK_SINKS = 16, 6, 2


def draw(page: Page) -> None:
    """Dense, window, window read anew, sinks and window: what each sees, loses, takes and holds."""
    if found := waiting.extra(*ways_job(page.view), st.empty()):
        four: list[Way] = found.value
        st.markdown(plain(way_words(four)), help=meaning("loss"))
        for column, way in zip(st.columns(4), four, strict=True):
            with column:
                labels = [str(place) for place in range(MASK_TOKENS)]
                show(drawn(visibility, way.mask, labels, title=way.name, is_small=True), f"mask-{way.key}")
        st.markdown(way_table(four))
        draw_bars(four)
        st.caption(
            f"The four small pictures are of {MASK_TOKENS} tokens at {MASK_BUDGET} entries ({MASK_SINKS} of them sinks "
            "in the last one): rows are queries, columns the keys they see. Where the window is read anew, the rows "
            "are those of the pass for the last token: all states of the window are computed anew for it."
            + sample_words(four)
        )


def draw_bars(four: Sequence[Way]) -> None:
    left, right = st.columns(2)
    names = [way.name for way in four]
    with left:
        losses = [way.loss for way in four]
        show(drawn(bars, names, losses, unit="nats a token", axis="loss after the prompt"), "ways-loss")
    with right:
        times = [way.token_ms for way in four]
        show(drawn(bars, names, times, unit="ms a token", axis="time to read the text"), "ways-time")


@dataclass(frozen=True, eq=False)
class Way:
    """One of the four ways to read a long text."""

    key: str
    name: str
    cost: str  # with T the text, L the window
    setup: Setup
    mask: NDArray[np.bool_]  # who sees whom, in small
    loss: float  # nats a token after the prompt
    token_ms: float  # of the whole pass
    cache_bytes: int
    tokens: int
    left: int = 0  # tokens that were not computed


def ways_of(budget: int, sinks: int = SINKS) -> list[tuple[str, str, str, Setup]]:
    """The sources' four: dense, window, window read anew, sinks and window."""
    return [
        ("dense", "dense", "O(T²) time, T entries", Setup(Full())),
        ("window", "window", "O(T·L) time, L entries", Setup(Window(budget))),
        ("anew", "window, read anew", "O(T·L²) time, no entries", Setup(Recompute(budget))),
        ("sinks", "sinks and window", "O(T·L) time, L entries", Setup(Streaming(budget, min(sinks, budget - 1)))),
    ]


def budget_for(view: View, tokens: int) -> int:
    """The budget of A, or of B, where it is below the text; else a common one."""
    sizes = [setup.policy.size for setup in (view.experiment.setup, view.versus)]
    return next((size for size in sizes if size is not None and 2 <= size < tokens), max(2, min(COMMON_BUDGET, tokens)))


def ways_job(view: View) -> tuple[Key, Callable[[Job], Result]]:
    """The four ways on the text on the left, with one budget."""
    experiment = view.experiment

    def compute(job: Job) -> Result:
        runs.loaded_model(experiment.model, job.tell)
        budget = budget_for(view, len(scored_text(experiment)[0]))
        ways, small, traces = ways_of(budget), ways_of(MASK_BUDGET, MASK_SINKS), []
        for place, (_, name, _, setup) in enumerate(ways):

            def tell(share: float, place: int = place, name: str = name) -> None:
                job.report(f"{place + 1} of {len(ways)}: {name}", (place + share) / len(ways))

            traces.append(read_under(experiment, setup, job, tell))
        losses = means_after([trace.nll for trace in traces], traces[0].prompt_tokens - 1)
        found = []
        for way, (*_, tiny), loss, trace in zip(ways, small, losses, traces, strict=True):
            mask, count = mask_of(experiment, tiny), trace.tokens
            found.append(Way(*way, mask, loss, token_ms(trace), trace.cache_bytes, count, left(trace)))
        return Result(found)

    sides = [setup.policy.size for setup in (view.experiment.setup, view.versus)]
    return ("ways", *text_key(experiment), *sides), compute


def left(trace: Trace) -> int:
    """How many tokens were left out, because reading a window anew for each would take too long."""
    return int(np.isnan(trace.nll).sum())


def token_ms(trace: Trace) -> float:
    """Milliseconds a token of the whole text; where windows were left out, as much more as they would have taken."""
    passes = 1 + max(0, trace.tokens - (trace.setup.policy.size or trace.tokens))  # of re-computation
    return 1000 * trace.seconds / trace.tokens * passes / (passes - left(trace))


def mask_of(experiment: Experiment, setup: Setup) -> NDArray[np.bool_]:
    """Which keys each query sees in a short text, (Q, T), from the lifetimes of a run of the model itself.

    Where every window is read anew, the rows are those of the last pass alone, which sees the last window causally.
    """
    from kvviz.run.replay import replay

    ids = scored_text(experiment)[0]
    short = [ids[place % len(ids)] for place in range(MASK_TOKENS)]
    return seen_in(replay(runs.loaded_model(experiment.model).model, short, setup))


def seen_in(trace: Trace) -> NDArray[np.bool_]:
    """Which keys each query sees in the first layer, (Q, T); of re-computation, those of the last pass alone."""
    rows, keys, lifetimes = np.arange(trace.tokens)[:, None], np.arange(trace.tokens), trace.evicted_at[0, 0]
    is_causal = keys <= rows
    if trace.setup.policy.recomputes:
        is_read = lifetimes >= trace.tokens
        return is_causal & is_read[:, None] & is_read
    return is_causal & (rows < lifetimes)


def way_table(four: Sequence[Way]) -> str:
    """A row a way, for Markdown."""
    rows = "\n".join(
        f"| {way.name} | {way.cost} | {way.loss:.3f} nats | {way.token_ms:.3g} ms | {way.cache_bytes / 2**20:.3g} MiB |"
        for way in four
    )
    return (
        "| way | cost for T tokens, window L | loss a token | time a token | held at the end |\n"
        f"|---|---|--:|--:|--:|\n{rows}"
    )


def sample_words(four: Sequence[Way]) -> str:
    """What was left out, and what that means for the losses and the time; empty where nothing was."""
    if not (left_out := max(way.left for way in four)):
        return ""
    return (
        f" Of {plural(four[0].tokens, 'token')} {left_out:,} were not read anew, which would take too long: all four "
        "losses are means over the others, and the time of reading anew is that of the passes made, counted for all."
    )


def way_words(four: Sequence[Way]) -> str:
    """What the four ways lose and take."""
    dense, window, anew, sinks = four
    entries = plural(window.setup.policy.size or 0, "entry")
    return (
        f"With {entries} the window loses {window.loss - dense.loss:.3g} nats a token to the full cache, read anew for "
        f"every token {anew.loss - dense.loss:.3g}, with sinks {sinks.loss - dense.loss:.3g}. Reading anew took "
        f"{anew.token_ms / sinks.token_ms:.3g} times as long as sinks and window for {plural(dense.tokens, 'token')}."
    )

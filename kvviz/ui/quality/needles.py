"""Which needles are found at which depth and length, under every setup, and whether a miss was forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.choices.setup import Setup
from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.figures import Drawing
from kvviz.figures.drawing import Table, row_table
from kvviz.figures.needles import loss_by_depth, miss_word, needle_grid
from kvviz.figures.theme import LINES
from kvviz.measures.interval import wilson
from kvviz.ui.quality.common import MANY_TOKENS, first_tokens, model_for
from kvviz.ui.quality.settings import LENGTHS, TASK_WORDS, QualitySettings
from kvviz.ui.quality.setups import Named, compared
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.page import Page
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.state import kept_setting
from kvviz.ui.shell.words import joined, plain, plural, setup_words

DEPTHS = (0, 25, 50, 75, 100)
FULL = "full"  # the row of the full cache, where it is neither A nor B nor added
VOID_BELOW = 0.95  # as the tasks have it; asked of the full cache


@dataclass(frozen=True, eq=False)
class Needles:
    """What one setup found: D depths, S seeds."""

    found: NDArray[np.bool_]  # (D, S); False throughout where a task asks nothing
    held: NDArray[np.float64]  # (D, S) share of layers and KV heads that held all of the needle; NaN without one
    loss: NDArray[np.float64]  # (D, S) nats a token of the answer
    pairs: int  # layers × KV heads
    cache_bytes: int  # at the end of the last prompt
    seconds: float  # of all replays
    is_scored: bool

    @property
    def is_void(self) -> bool:
        """Whether, of the full cache, the task says nothing about a policy."""
        return self.is_scored and float(self.found.mean()) < VOID_BELOW


@dataclass(frozen=True, eq=False)
class Row:
    """A row of the grid: a setup and the length of its prompts."""

    letter: str
    setup: Setup
    tokens: int
    needles: Needles

    @property
    def name(self) -> str:
        return f"{self.letter}, {self.tokens:,}"


def draw(page: Page) -> None:
    """The menus of task, lengths and tries, and the grid."""
    controls()
    own = page.view.of(QualitySettings)
    lengths, named = [int(length) for length in own.lengths.split("/")], with_full(compared(page.view))
    asked = [(letter, setup, length) for length in lengths for letter, setup in named]
    jobs = [needles_job(page.view.experiment.model, setup, own.task, length, own.seeds) for _, setup, length in asked]
    found = waiting.extras(jobs, st.empty())
    if any(one is None for one in found):
        return
    rows = [Row(*words, one.value) for words, one in zip(asked, found, strict=True) if one is not None]
    void = {row.tokens for row in rows if row.setup == Setup() and row.needles.is_void}
    for length in sorted(void):
        st.warning(void_words(next(row for row in rows if row.setup == Setup() and row.tokens == length)))
    if sound := [row for row in rows if row.tokens not in void]:
        draw_rows(sound, named, own.task)


def draw_rows(rows: Sequence[Row], named: Sequence[tuple[str, Setup]], task: str) -> None:
    title = f"{'Needles found' if rows[0].needles.is_scored else 'Loss'}: {TASK_WORDS[task]}"
    if rows[0].needles.is_scored:
        st.markdown(needle_words(rows))
        show(grid_figure(rows, title), "needles")
    else:
        show(loss_figure(rows, title), "loss-by-depth")
    st.caption(plain(f"{legend(named)} {cost_words(rows)}"))


def controls() -> None:
    """What is asked, how long the prompts are, how often."""
    left, middle, right = st.columns([3, 2, 2])
    words = {"format_func": TASK_WORDS.__getitem__, "help": meaning("needle"), **kept_setting(QualitySettings, "task")}
    left.selectbox("What is asked for", list(TASK_WORDS), **words)
    shown = {length: length.replace("/", ", ").replace("1024", "1,024") for length in LENGTHS}
    middle.selectbox(
        "Tokens of a prompt", LENGTHS, format_func=shown.__getitem__, **kept_setting(QualitySettings, "lengths")
    )
    right.selectbox("Prompts for each depth", (1, 2, 3, 4), **kept_setting(QualitySettings, "seeds"))


def with_full(named: Sequence[Named]) -> list[tuple[str, Setup]]:
    """The setups with their letters, each once, and the full cache, which says whether a task means anything."""
    found: dict[Setup, str] = {}
    for one in named:
        found.setdefault(one.setup, one.letter.upper())
    found.setdefault(Setup(), FULL)
    return [(letter, setup) for setup, letter in found.items()]


def needles_job(
    model: str, setup: Setup, task_name: str, tokens: int, seeds: int
) -> tuple[Key, Callable[[Job], Result]]:
    """The needles under one setup: its key and how to look for them."""

    def compute(job: Job) -> Result:
        from kvviz.analysis.tasks import TASKS, VARIANTS
        from kvviz.analysis.tasks.scoring import each_cell
        from kvviz.models.tokens import encode

        loaded, task = model_for(model, [setup], job), {**TASKS, **VARIANTS}[task_name]
        doing = f"{task.title} in {tokens:,} tokens under {setup_words(setup)}"
        cells = each_cell(
            loaded.model,
            lambda text: encode(loaded.tokenizer, text, MANY_TOKENS),
            first_tokens(model, PRESETS[LONG_TEXT].text(), MANY_TOKENS),
            task,
            setup,
            tokens=tokens,
            depths=DEPTHS,
            seeds=seeds,
            progress=lambda share: job.report(doing, share),
            is_cancelled=job.is_unwanted,
        )
        return Result(gathered([*cells], task.is_scored, seeds))

    return ("needles", model, task_name, tokens, seeds, str(setup)), compute


def gathered(asked: Sequence[tuple[object, object]], is_scored: bool, seeds: int) -> Needles:
    """Cells (in the order of seeds, then depths) with their traces as arrays."""
    cells, traces = zip(*asked, strict=True)
    shape = (seeds, len(DEPTHS))
    held = [np.nan if cell.held is None else cell.held for cell in cells]
    return Needles(
        found=np.array([bool(cell.found) for cell in cells]).reshape(shape).T,
        held=np.array(held, dtype=np.float64).reshape(shape).T,
        loss=np.array([cell.answer_loss for cell in cells]).reshape(shape).T,
        pairs=traces[-1].layers * traces[-1].kv_heads,
        cache_bytes=traces[-1].cache_bytes,
        seconds=sum(trace.seconds for trace in {id(trace): trace for trace in traces}.values()),
        is_scored=is_scored,
    )


def grid_figure(rows: Sequence[Row], title: str) -> Drawing:
    """Shares found by depth; of the misses, how many layers and heads held the needle; every needle in the table."""
    found = np.array([row.needles.found.mean(1) for row in rows])
    held = np.array([missed_held(row.needles) for row in rows])
    first = rows[0].needles
    looks = {"tries": first.found.shape[1], "pairs": first.pairs, "title": title}
    names = [row.name for row in rows]
    return drawn(needle_grid, names, DEPTHS, found, held, **looks).with_table(table(rows))


def missed_held(needles: Needles) -> NDArray[np.float64]:
    """Of the needles missed at each depth, the mean share of layers and heads that held them, (D,); NaN if none was."""
    missed = ~needles.found
    total = np.where(missed, needles.held, 0).sum(1)
    return np.divide(total, missed.sum(1), out=np.full(len(total), np.nan), where=missed.any(1))


def table(rows: Sequence[Row]) -> Table:
    """A row a needle: what became of it."""
    lines = []
    for row in rows:
        for (place, seed), is_found in np.ndenumerate(row.needles.found):
            held = float(row.needles.held[place, seed])
            outcome = "found" if is_found else miss_word(held)
            pairs = round(held * row.needles.pairs)
            loss = float(row.needles.loss[place, seed])
            lines.append((str(row.setup), row.tokens, DEPTHS[place], seed, outcome, pairs, row.needles.pairs, loss))
    header = (
        "setup",
        "tokens",
        "depth (%)",
        "seed",
        "outcome",
        "held by",
        "of layers and KV heads",
        "loss (nats a token)",
    )
    return row_table(header, lines)


def loss_figure(rows: Sequence[Row], title: str) -> Drawing:
    """The loss at each depth, of the shortest text that was read."""
    shown = [row for row in rows if row.tokens == rows[0].tokens]
    taken = {row.letter.lower() for row in shown}
    spare = [letter for letter in LINES if letter not in taken]
    series = []
    for row in shown:
        if row.letter != FULL:
            series.append((row.name, row.letter.lower(), row.needles.loss.mean(1)))
        elif spare:  # nine lines would be one too many
            series.append((row.name, spare[0], row.needles.loss.mean(1)))
    return drawn(loss_by_depth, series, DEPTHS, title=title)  # type: ignore[arg-type]


def void_words(full: Row) -> str:
    """Why there is no grid."""
    found = full.needles.found
    return (
        f"This task is void for this model at {full.tokens:,} tokens: with the full cache it finds {int(found.sum())} "
        f"of {found.size} itself, less than {VOID_BELOW:.0%}, so a miss says nothing about a policy. Choose another "
        "task or length."
    )


def needle_words(rows: Sequence[Row]) -> str:
    """How many needles each setup found, with the interval that so few tries leave."""
    parts = []
    for row in rows:
        count, of = int(row.needles.found.sum()), row.needles.found.size
        low, high = wilson(count, of)
        parts.append(f"{row.name}: {count} of {of} ({low:.0%} to {high:.0%})")
    return (
        f"Found, with the 95 % interval of so few tries: {'; '.join(parts)}. *Forgotten*: when the answer began, fewer "
        f"than half of the {rows[0].needles.pairs} layers and KV heads still held all of the needle (*held 12/90*: "
        "held by 12 of 90); *not found*: at least half did."
    )


def legend(named: Sequence[tuple[str, Setup]]) -> str:
    """What the letters of the rows stand for."""
    return f"Rows: {joined([f'{letter} = {setup_words(setup)}' for letter, setup in named])}."


def cost_words(rows: Sequence[Row]) -> str:
    cells = sum(row.needles.found.size for row in rows)
    return f"{plural(cells, 'prompt')}, read in {sum(row.needles.seconds for row in rows):.3g} s."

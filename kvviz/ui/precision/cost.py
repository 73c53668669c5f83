"""What few bits cost and save: the loss after the prompt, and the true bytes with their scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from kvviz.choices.setup import Setup
from kvviz.choices.storage import Native, Storage
from kvviz.figures import Drawing
from kvviz.figures.bars import bars
from kvviz.ui.precision.errors import given, storages
from kvviz.ui.precision.settings import PrecisionSettings
from kvviz.ui.quality.common import late_loss
from kvviz.ui.quality.needle_run import needles_job
from kvviz.ui.quality.scored import read_under, text_key
from kvviz.ui.shell import waiting
from kvviz.ui.shell.chart import show
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.runs import Key
from kvviz.ui.shell.state import View
from kvviz.ui.shell.words import plain, plural

if TYPE_CHECKING:
    from kvviz.analysis.precision.groups import Bytes

NEEDLE_TOKENS, NEEDLE_SEEDS, MIB = 256, 1, 2**20


@dataclass(frozen=True)
class Cost:
    """One storage on the text: loss after the prompt, what its tensors hold, and how many numbers those stand for."""

    name: str
    loss: float
    held: Bytes
    numbers: int

    @property
    def bits(self) -> float:
        """Bits a number, scales and exact entries counted."""
        return 8 * self.held.total / self.numbers


def draw_cost(view: View) -> None:
    """Loss added, and a table of bytes."""
    if found := waiting.extra(*cost_job(view), st.empty()):
        costs: list[Cost] = found.value
        st.markdown(plain(cost_words(costs)), help=meaning("loss", "payload"))
        show(loss_figure(costs), "loss-by-bits")
        st.markdown(byte_table(costs))


def cost_job(view: View) -> tuple[Key, Callable[[Job], Result]]:
    """The text read under every storage with the full cache."""
    chosen = view.of(PrecisionSettings)

    def compute(job: Job) -> Result:
        from kvviz.analysis.precision.groups import bytes_held, read_whole

        loaded, ids = given(view, job)
        every: list[Storage] = [Native(), *storages(view)]
        found: list[Cost] = []
        for place, storage in enumerate(every):

            def tell(share: float, place: int = place, name: str = storage.name()) -> None:
                job.report(f"{loaded.card.title} reads with {name} keys and values", (place + share / 2) / len(every))

            setup = Setup(storage=storage)
            loss = late_loss(read_under(view.experiment, setup, job, tell))
            held = bytes_held(read_whole(loaded.model, ids, setup))
            numbers = found[0].numbers if found else held.total // loaded.model.dtype.itemsize  # the native cache's
            found.append(Cost(storage.name(), loss, held, numbers))
        return Result(found)

    return ("precision-cost", *text_key(view.experiment), chosen.group, chosen.residual), compute


def cost_words(costs: list[Cost]) -> str:
    """What each storage costs and holds beside the exact one."""
    native, *others = costs
    parts = [
        f"{one.name} {one.loss - native.loss:+.2g} nats at {one.held.total / native.held.total:.0%} of the bytes"
        for one in others
    ]
    return (
        f"With exact numbers the loss after the prompt is {native.loss:.3g} nats a token; {'; '.join(parts)}. The "
        "cache really holds codes here: keys grouped by channel, values within a token."
    )


def loss_figure(costs: list[Cost]) -> Drawing:
    title = "Loss after the prompt, full cache"
    return drawn(
        bars, [one.name for one in costs], [one.loss for one in costs], unit="nats a token", axis="loss", title=title
    )


def byte_table(costs: list[Cost]) -> str:
    """True bytes, part by part, for Markdown."""
    header = "| storage | codes | scales and minima | still exact | all | bits a number |\n|---|--:|--:|--:|--:|--:|\n"
    return header + "\n".join(byte_row(one) for one in costs)


def byte_row(one: Cost) -> str:
    parts = (one.held.codes, one.held.scales, one.held.exact, one.held.total)
    return f"| {one.name} | {' | '.join(f'{part / MIB:.3g} MiB' for part in parts)} | {one.bits:.3g} |"


def draw_needles(view: View) -> None:
    """One number in a long text at five depths, under every storage; on request, for it takes half a minute."""
    setups = [Setup(storage=storage) for storage in (Native(), *storages(view))]
    jobs = [needles_job(view.experiment.model, setup, "passkey", NEEDLE_TOKENS, NEEDLE_SEEDS) for setup in setups]
    if not waiting.asked(("bits-needles", *(key for key, _ in jobs)), "Look for needles under every storage"):
        st.caption(
            f"One number in {NEEDLE_TOKENS} tokens of the language reference, at five depths, asked for at the end."
        )
        return
    found = waiting.extras(jobs, st.empty())
    if any(one is None for one in found):
        return
    names = [setup.storage.name() for setup in setups]
    every = [one.value for one in found if one is not None]
    if every[0].is_void:
        st.info("The full cache with exact numbers does not find them all, so this task says nothing about this model.")
        return
    counts = [int(one.found.sum()) for one in every]
    most = every[0].found.size
    parts = [f"{name} finds {count} of {most}" for name, count in zip(names, counts, strict=True)]
    st.markdown(plain(f"{'; '.join(parts)}. {interval_words(counts[-1], most)}"), help=meaning("needle"))
    losses = [float(one.loss.mean()) for one in every]
    title = f"Loss of the answer, {plural(most, 'needle')} each"
    show(drawn(bars, names, losses, unit="nats a token", axis="loss of the answer", title=title), "needles-by-bits")


def interval_words(found: int, of: int) -> str:
    from kvviz.measures.interval import wilson

    low, high = wilson(found, of)
    return f"With so few, the true share of int2 lies between {low:.0%} and {high:.0%} (Wilson, 95 %)."

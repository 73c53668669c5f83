"""The page's main figures: the error of one storage by layer and head, and of all of them by layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvviz.choices.setup import Setup
from kvviz.choices.storage import Quantised, parse_storage
from kvviz.figures import Drawing
from kvviz.figures.overview import layer_head_grid
from kvviz.figures.series import series_lines
from kvviz.ui.precision.settings import BITS, GROUPINGS, MEASURES, MOST_GROUP, MOST_RESIDUAL, PrecisionSettings
from kvviz.ui.quality.common import first_tokens, model_for
from kvviz.ui.quality.scored import text_key
from kvviz.ui.shell.drawn import drawn
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.jobs import Job, Result
from kvviz.ui.shell.number_fields import whole_number
from kvviz.ui.shell.runs import TOKENS_ON_A_PAGE, Key
from kvviz.ui.shell.state import View, kept_setting
from kvviz.ui.shell.words import plural

if TYPE_CHECKING:
    from torch import Tensor

    from kvviz.analysis.precision.errors import Errors, Layers
    from kvviz.models import Loaded

Floats = NDArray[np.floating]
ROW = 11  # pixels of a layer
COLOURS = {"int8": "d", "int4": "a", "int2": "b"}
UNITS = {
    "keys": "share of their length",
    "values": "share of their length",
    "scores": "before softmax",
    "weights": "share of the attention",
    "output": "share of its length",
}


@dataclass(frozen=True, eq=False)
class Measured:
    """The errors, and how many tokens were read."""

    layers: Layers
    tokens: int

    @property
    def nbytes(self) -> int:
        return self.layers.nbytes

    def of(self, chosen: PrecisionSettings, bits: str | None = None) -> Errors:
        """Those of one storage, keys grouped as chosen."""
        return self.layers.errors[bits or chosen.bits, chosen.grouping]


def controls() -> None:
    """Which storage and error are shown, and how numbers are grouped."""
    left, right = st.columns([1, 2])
    looks: dict[str, Any] = {"required": True}
    left.segmented_control(
        "Bits", list(BITS), format_func=BITS.__getitem__, **looks, **kept_setting(PrecisionSettings, "bits")
    )
    right.segmented_control(
        "Error of",
        list(MEASURES),
        format_func=MEASURES.__getitem__,
        **looks,
        **kept_setting(PrecisionSettings, "measure"),
    )
    with st.expander("How numbers are grouped"):
        first, second, third = st.columns([2, 1, 1])
        words = {"format_func": GROUPINGS.__getitem__, **kept_setting(PrecisionSettings, "grouping")}
        first.selectbox("Keys that share a scale", list(GROUPINGS), **words)
        try:
            whole_number(second, "Group (numbers)", "bits_group", 32, 1, MOST_GROUP)
            whole_number(third, "Kept exact (latest)", "bits_residual", 32, 1, MOST_RESIDUAL, help=meaning("residual"))
        except ValueError as error:
            st.error(str(error))


def storages(view: View) -> list[Quantised]:
    """All three with the group and residual that are set; ValueError where these do not fit each other."""
    chosen, found = view.of(PrecisionSettings), []
    for name in BITS:
        storage = parse_storage(f"{name}:group={chosen.group},residual={chosen.residual}")
        assert isinstance(storage, Quantised)
        found.append(storage)
    return found


def given(view: View, job: Job) -> tuple[Loaded, Tensor]:
    """The model and the tokens; ValueError where it cannot code its cache."""
    experiment = view.experiment
    loaded = model_for(experiment.model, [Setup(storage=storage) for storage in storages(view)], job)
    import torch

    count = min(experiment.tokens, TOKENS_ON_A_PAGE)
    ids = first_tokens(experiment.model, experiment.text.content, count)
    return loaded, torch.tensor(ids, device=loaded.model.device)


def errors_job(view: View) -> tuple[Key, Callable[[Job], Result]]:
    """All storages on this text, keys grouped both ways."""
    chosen = view.of(PrecisionSettings)

    def compute(job: Job) -> Result:
        from kvviz.analysis.precision.errors import layer_errors

        loaded, ids = given(view, job)
        doing = f"{loaded.card.title} reads {plural(len(ids), 'token')} with coded keys and values"
        tell = {"progress": lambda share: job.report(doing, share), "is_cancelled": job.is_unwanted}
        found = Measured(layer_errors(loaded.model, ids, storages(view), **tell), len(ids))  # type: ignore[arg-type]
        return Result(found, found.nbytes)

    return ("precision", *text_key(view.experiment), chosen.group, chosen.residual), compute


def headline(found: Measured, chosen: PrecisionSettings) -> str:
    """How much of the attention each storage moves, and in which layer most."""
    parts = []
    for name in ("int4", "int2", "int8"):
        by_layer = found.of(chosen, name).weights.mean(1)
        worst = int(by_layer.argmax())
        parts.append(f"{name} {percent(by_layer.mean())} ({percent(by_layer[worst])} in layer {worst})")
    first, *rest = parts
    return f"{first.replace(' ', ' keys move ', 1).replace(' (', ' of the attention (', 1)}; {'; '.join(rest)}."


def percent(share: float) -> str:
    """Two significant digits: ``2.9 %``, ``0.17 %``."""
    return f"{100 * share:.2g} %"


def map_figure(found: Measured, chosen: PrecisionSettings) -> Drawing:
    """One error of one storage by layer and head, from 0 to the largest."""
    values = getattr(found.of(chosen), chosen.measure)
    name = f"error of {MEASURES[chosen.measure].lower()}"
    top = float(values.max()) or 1.0
    looks: dict[str, Any] = {"name": name, "unit": UNITS[chosen.measure], "value_range": (0.0, top), "row": ROW}
    heads = "KV heads" if chosen.measure in ("keys", "values") else "heads"
    return drawn(
        layer_head_grid, values, **looks, title=f"{chosen.bits}: {MEASURES[chosen.measure].lower()}, layers × {heads}"
    )


def lines_figure(found: Measured, chosen: PrecisionSettings) -> Drawing:
    """The same of all three, mean over the heads of a layer."""
    lines = [(name, COLOURS[name], getattr(found.of(chosen, name), chosen.measure).mean(1)) for name in BITS]
    title = f"{MEASURES[chosen.measure]}, mean over the heads"
    looks: dict[str, Any] = {"y_title": f"error ({UNITS[chosen.measure]})", "x_title": "layer", "from_zero": True}
    return drawn(series_lines, lines, **looks, title=title)  # type: ignore[arg-type]


def measured_words(found: Measured, chosen: PrecisionSettings) -> str:
    """Over what the errors are means."""
    errors = found.of(chosen)
    return (
        f"{found.tokens:,} tokens, of which the last query sees {found.layers.coded:,} keys coded. Each layer gets its "
        f"own exact inputs; up to 64 queries ask. Means over layers and heads under {chosen.bits}: keys are off by "
        f"{percent(errors.keys.mean())} of their length, scores by {errors.scores.mean():.2g}, weights by "
        f"{percent(errors.weights.mean())} of the attention, outputs by {percent(errors.output.mean())} of "
        "their length."
    )

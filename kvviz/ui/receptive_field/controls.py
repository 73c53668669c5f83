"""The Receptive field page's own fields: the token, where its path begins, and how influence is measured."""

from __future__ import annotations

from streamlit.delta_generator import DeltaGenerator

from kvviz.choices.experiment import TOKENS_LIMIT
from kvviz.ui.receptive_field.settings import MEASURED, ReachSettings
from kvviz.ui.shell.glossary import meaning
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import kept, kept_setting

COUNTED_FROM_0 = " (the figures count from 1)"


def measured_by(place: DeltaGenerator) -> str:
    """How influence is measured."""
    looks = {"help": meaning("gradient", "rollout"), **kept_setting(ReachSettings, "by")}
    words = MEASURED.__getitem__
    return str(
        place.segmented_control("Influence measured by", list(MEASURED), format_func=words, required=True, **looks)
    )


def query_field(place: DeltaGenerator, run: Run) -> None:
    """The token asked about, by its position as arrays count; an empty field means the last one."""
    last = run.trace.tokens - 1
    looks = {"placeholder": "the last", "help": meaning("receptive field"), **kept("query", None)}
    place.number_input(f"Token: position 0–{last}{counted(run)}", 0, TOKENS_LIMIT, None, 1, **looks)


def source_field(place: DeltaGenerator, run: Run, query: int) -> None:
    """Where the strongest path begins; an empty field means as far away as a relay is needed."""
    looks = {
        "placeholder": "the farthest relayed",
        "help": meaning("relay"),
        **kept_setting(ReachSettings, "path_from"),
    }
    place.number_input(f"Path from: position 0–{query}{counted(run)}", 0, TOKENS_LIMIT, None, 1, **looks)


def counted(run: Run) -> str:
    return COUNTED_FROM_0 if run.count_from else ""

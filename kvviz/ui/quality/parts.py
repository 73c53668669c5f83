"""The supporting figures of the Quality page; only the open part is computed."""

from __future__ import annotations

from kvviz.ui.quality import forgotten, needles, sweep, ways
from kvviz.ui.shell.runs import Run
from kvviz.ui.shell.state import View


def draw(part: str, view: View, runs: tuple[Run, Run], layer: int) -> None:
    """The part that is open."""
    if part == "words":
        forgotten.draw(*runs, layer)
    elif part == "sweep":
        sweep.draw(view, runs[0])
    elif part == "needles":
        needles.draw(view)
    else:
        ways.draw(view, runs)

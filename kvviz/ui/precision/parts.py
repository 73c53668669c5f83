"""The supporting figures of the Precision page; only the open part is computed."""

from __future__ import annotations

from kvviz.ui.precision import channels, cost, worked
from kvviz.ui.precision.errors import Measured
from kvviz.ui.shell.state import View


def draw(part: str, view: View, found: Measured) -> None:
    """The part that is open."""
    if part == "channels":
        channels.draw(view, found)
    elif part == "worked":
        worked.draw(view, found)
    elif part == "cost":
        cost.draw_cost(view)
    else:
        cost.draw_needles(view)

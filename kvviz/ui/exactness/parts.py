"""The supporting figures of the Exactness page; only the open part is computed."""

from __future__ import annotations

from collections.abc import Callable

from kvviz.ui.exactness import edits, masks, numbering, removal
from kvviz.ui.exactness import view as look
from kvviz.ui.exactness.reuse import Reused
from kvviz.ui.shell.state import View

DRAWN: dict[str, Callable[[View], None]] = {
    "edit": edits.draw,
    "mask": masks.draw,
    "removal": removal.draw,
    "positions": numbering.draw,
}


def draw(part: str, view: View, lines: list[Reused]) -> None:
    """The part that is open; ``lines`` are those of the main figure."""
    if part == "broken":
        look.draw_table(view, lines)
    else:
        DRAWN[part](view)

"""The supporting figures of the Quality page; only the open part is computed."""

from __future__ import annotations

from kvviz.ui.quality import forgotten, limits, native, needles, sweep, tradeoff, ways
from kvviz.ui.shell.page import Page

DRAWN = {
    "words": forgotten.draw,
    "tradeoff": tradeoff.draw,
    "sweep": sweep.draw,
    "limits": limits.draw,
    "needles": needles.draw,
    "ways": ways.draw,
    "native": native.draw,
}


def draw(part: str, page: Page) -> None:
    """The part that is open."""
    DRAWN[part](page)

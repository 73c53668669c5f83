"""Pages without a browser."""

from collections.abc import Iterator

import pytest

from kvviz.ui.pages import PAGES
from kvviz.ui.shell import page
from kvviz.ui.shell.settings import register


@pytest.fixture(autouse=True, scope="session")
def pages_are_known() -> None:
    """As when one of them opens; what reads a link asks each page for its settings."""
    register(PAGES)


@pytest.fixture(autouse=True, scope="session")
def no_browser_that_paints() -> Iterator[None]:
    """Nobody paints here, so the script need not wait for it."""
    seconds, page.PAINT_SECONDS = page.PAINT_SECONDS, 0.0
    yield
    page.PAINT_SECONDS = seconds

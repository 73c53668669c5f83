"""Pages without a browser."""

from collections.abc import Iterator

import pytest

from kvviz.ui.shell import page


@pytest.fixture(autouse=True, scope="session")
def no_browser_that_paints() -> Iterator[None]:
    """Nobody paints here, so the script need not wait for it."""
    seconds, page.PAINT_SECONDS = page.PAINT_SECONDS, 0.0
    yield
    page.PAINT_SECONDS = seconds

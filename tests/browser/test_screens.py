"""Every page as it is first seen: what stands on its first screen, how long it is, and what axe-core says of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import Page

from kvviz.ui.pages import PAGES
from kvviz.ui.shell.settings import PageEntry
from tests.browser.conftest import picture, settle

Open = Callable[[str], Page]
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
ALL = f"{{type: 'tag', values: {TAGS}}}"
TELL = """found => found.violations.filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => [one.id, one.nodes.map(node => node.html.slice(0, 200))])"""
CONTRAST = "{type: 'rule', values: ['color-contrast']}"  # all that another theme changes
# findings in the markup of Streamlit or plotly that we cannot change: the rule, and why. There is none.
FOREIGN: dict[str, str] = {}
TEXT = "text=story&tokens=25&stream_tokens=32&speed_tokens=64&draft_new=4&bits_group=8&bits_residual=8"
SCREEN: Any = {"width": 1280, "height": 800}
TALL: Any = {"width": 1280, "height": 2000}  # what is scrolled out of sight is not looked at
LONGEST = 1850  # pixels of a page with its first part open
FIGURES = "[data-testid=stMain] :is([data-testid=stPlotlyChart], [data-testid=stBidiComponentIsolated])"


def test_pages_at_first_sight(server: str, open_page: Open) -> None:
    """Examples lay 2,000 to 3,500 pixels below the figure they change; quiet words had a contrast of 4.04 to 1.

    One browser for all pages, because to open one costs more than to look at it.
    """
    page = open_page(f"{server}/?{TEXT}")
    for entry in PAGES:
        name = Path(entry.path).stem.partition("_")[2]
        page.set_viewport_size(SCREEN)
        page.goto(f"{server}/{name}?{TEXT}")
        picture(page)
        settle(page)
        assert length_of(page) <= LONGEST, entry.title
        assert share_in_sight(page, entry) > 0.6, entry.title
        page.set_viewport_size(TALL)
        page.get_by_role("button", name="Numbers: ").first.click()
        page.evaluate(AXE)
        assert findings(page) == [], entry.title
        page.emulate_media(color_scheme="dark")
        page.wait_for_function("getComputedStyle(document.querySelector('.stApp')).colorScheme === 'dark'")
        assert findings(page, CONTRAST) == [], f"{entry.title}, dark"
        page.emulate_media(color_scheme="light")


def length_of(page: Page) -> int:
    """Pixels from the top of the page to its end."""
    return int(page.get_by_test_id("stMain").evaluate("main => main.scrollHeight"))


def share_in_sight(page: Page, entry: PageEntry) -> float:
    """How much of the first figure, which begins below all examples, is on the first screen."""
    figure = page.locator(FIGURES).first.bounding_box()
    chips = [page.get_by_role("button", name=one.label).bounding_box() for one in entry.examples]
    assert figure is not None and chips
    assert all(chip is not None and chip["y"] + chip["height"] <= figure["y"] for chip in chips)
    return float((SCREEN["height"] - figure["y"]) / figure["height"])


def findings(page: Page, rules: str = ALL) -> list[tuple[str, list[str]]]:
    """What axe-core finds serious or critical: the rule, and the elements' markup."""
    found = page.evaluate(f"axe.run({{runOnly: {rules}, resultTypes: ['violations']}}).then({TELL})")
    return [(rule, markup) for rule, markup in found if rule not in FOREIGN]

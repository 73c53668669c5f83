"""``python -m benchmarks.second_start [PAGE]``: how long the app takes from the command to a usable page.

The model is in the cache already, as at every start but the first. The browser is open and waits; from the start of
the process are timed: the server answers, the settings can be used, the first figure is there. Three starts.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator

from playwright.sync_api import Browser, sync_playwright

from benchmarks.app import CHROMIUM, FLAGS, running
from benchmarks.results import Figure

STARTS = 3
PATIENCE = 120_000  # milliseconds
FIGURE = "[data-testid=stPlotlyChart][aria-label*=token] .main-svg"  # not the empty frame before it
WANTED = {"first figure": "≤ 6"}
MARKS = ("server answers", "settings usable", "first figure")


def marks(browser: Browser, name: str) -> Iterator[float]:
    """Seconds from the start of the process to each of ``MARKS``."""
    started = time.perf_counter()
    with running() as address:
        yield time.perf_counter() - started
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE)
        page.goto(f"{address}/{name}", wait_until="commit")
        page.get_by_label("Tokens", exact=True).wait_for()
        yield time.perf_counter() - started
        page.locator(FIGURE).first.wait_for()
        yield time.perf_counter() - started
        page.close()


def figures(name: str = "") -> Iterator[Figure]:
    """Median and range of the marks over a few starts; the first, which fills the results on disk, does not count."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        browser.new_page().goto("about:blank")
        starts = [list(marks(browser, name)) for _ in range(STARTS + 1)][1:]
        browser.close()
    for mark, times in zip(MARKS, zip(*starts, strict=True), strict=True):
        wanted = WANTED.get(mark, "")
        yield Figure(f"second start: {mark}", statistics.median(times), "s", wanted, min(times), max(times))


def main() -> None:
    for figure in figures(sys.argv[1] if len(sys.argv) > 1 else ""):
        print(figure)


if __name__ == "__main__":
    main()

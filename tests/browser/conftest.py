"""A freshly started server and a headless chromium; tests that need them are skipped where no chromium is found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from benchmarks.app import AS_A_HOST, CHROMIUM, FLAGS, running

PATIENCE = 60_000  # milliseconds; the machine may be busy
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="no chromium found; .ci/run installs one"))


@pytest.fixture(scope="package", autouse=True)
def nothing_kept() -> None:
    """What an earlier run left on disk must not decide what these servers show."""
    os.environ["KVVIZ_KEEP_RESULTS"] = "0"


@pytest.fixture(scope="package")
def server() -> Iterator[str]:
    """The app as ``make run`` starts it."""
    with running() as address:
        yield address


@pytest.fixture
def fresh_server() -> Iterator[str]:
    """The app as a host starts it: nothing loaded, no page opened yet."""
    with running(AS_A_HOST) as address:
        yield address


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[[str], Page]]:
    """Opens an address in a browser of its own (no shared cookies or session) and waits for the picture."""
    contexts: list[BrowserContext] = []

    def opened(address: str) -> Page:
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()


def settle(page: Page) -> None:
    """Wait until the script has run to its end and nothing on the page is stale."""
    app = page.locator('[data-testid="stApp"]')
    app.wait_for()
    page.wait_for_timeout(300)
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=PATIENCE)
    page.wait_for_function("document.querySelectorAll('[data-testid=stSkeleton]').length === 0", timeout=PATIENCE)
    page.wait_for_timeout(200)


def picture(page: Page) -> list[str]:
    """What the page says in numbers: its headline and the alt texts of its figures."""
    page.locator("[data-testid=stPlotlyChart] .main-svg").first.wait_for()
    heading = page.locator("h2").first.inner_text()
    charts = page.locator("[data-testid=stPlotlyChart]")
    alts = charts.evaluate_all("charts => charts.map(chart => chart.getAttribute('aria-label'))")
    return [heading, *alts]

"""``python -m benchmarks.page_latency [ADDRESS]``: how long a page takes to show a changed setting, and what it weighs.

Starts the app and a headless chromium unless the address of a running app is given. A time runs from the key press that
changes the budget to the second frame after the figure's numbers have changed; the payload is everything the server
sends for a freshly opened page.
"""

from __future__ import annotations

import statistics
import sys

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.app import CHROMIUM, FLAGS, running

PAGES = ("", "Attention", "Cache", "Sinks", "Memory")
REPEATED = (64, 63, 64, 63, 64)
PATIENCE = 120_000  # milliseconds
WATCH = """() => {
    const label = () => document.querySelector('[data-testid=stPlotlyChart]')?.getAttribute('aria-label');
    const before = label();
    window.shownAfter = new Promise(shown => document.addEventListener('keydown', key => {
        const watcher = new MutationObserver(() => {
            if (!label() || label() === before) return;
            watcher.disconnect();
            const done = () => shown((performance.now() - key.timeStamp) / 1000);
            requestAnimationFrame(() => requestAnimationFrame(done));
        });
        watcher.observe(document.body, {attributes: true, childList: true, subtree: true});
    }, {capture: true, once: true}));
}"""


def settled(page: Page) -> None:
    page.locator("[data-testid=stPlotlyChart] .main-svg").first.wait_for(timeout=PATIENCE)
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=PATIENCE)
    page.wait_for_timeout(800)


def seconds_to_show(page: Page, budget: int) -> float:
    """From the key press to the new figure, by the browser's own clock."""
    field = page.get_by_label("A's budget: keys a query may see", exact=True)
    field.fill(str(budget))
    page.evaluate(WATCH)
    field.press("Enter")
    seconds = float(page.evaluate("window.shownAfter"))
    settled(page)
    return seconds


def payload(browser: Browser, address: str) -> int:
    """Bytes of all messages of a freshly opened page."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    sizes: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))))
    page.goto(address)
    settled(page)
    page.close()
    return sum(sizes)


def report(browser: Browser, address: str) -> None:
    for place, name in enumerate(PAGES):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{address}/{name}?text=story&tokens=256&policy=window%3Abudget%3D64")
        settled(page)
        for kind, budgets in (("new", range(60 - place, 30, -6)), ("repeated", REPEATED)):
            times = [seconds_to_show(page, budget) for budget in budgets]
            spread = f"{min(times):.2f}–{max(times):.2f}"
            print(
                f"{name or 'Start':9} 256 tokens, {kind} setting: median {statistics.median(times):.2f} s ({spread} s)"
            )
        page.close()
    for name in PAGES:
        for tokens in (256, 512):
            size = payload(browser, f"{address}/{name}?text=language-reference&tokens={tokens}")
            print(f"{name or 'Start':9} {tokens:4} tokens: {size / 1e6:.2f} MB")


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        if len(sys.argv) > 1:
            report(browser, sys.argv[1])
        else:
            with running() as address:
                report(browser, address)
        browser.close()


if __name__ == "__main__":
    main()

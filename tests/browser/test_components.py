"""The components in a real browser: keys, clicks, hostile tokens, narrow screens."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from benchmarks.app import running
from tests.ui import component_data

PAGE = Path(component_data.__file__).with_name("component_page.py")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The page on a server of its own, ended afterwards."""
    options = ("--server.fileWatcherType", "none", "--browser.gatherUsageStats", "false")
    with running((sys.executable, "-m", "streamlit", "run", str(PAGE), *options)) as server:
        yield f"{server}/"


@pytest.fixture
def page(address: str, browser: Browser) -> Iterator[Any]:
    """A session of its own at the page, with everything drawn; it fails the test on a script error."""
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    one = context.new_page()
    errors: list[str] = []
    one.on("pageerror", lambda error: errors.append(str(error)))
    one.on("dialog", lambda dialog: errors.append(f"a token ran as a script: {dialog.message}"))
    one.goto(address)
    one.locator(".kv-strip button").first.wait_for(timeout=30_000)
    one.locator(".kv-grid button").first.wait_for()
    one.locator(".kv-headline").nth(1).wait_for()
    yield one
    context.close()
    assert errors == []


def headline(step: int, head: int = 0, seed: int = 0) -> str:
    """What the player must say after a step, from the definition of lifetimes; numbers count from 1."""
    life = component_data.lifetimes(seed)[head]
    held = [token + 1 for token in range(step + 1) if life[token] > step]
    left = [token + 1 for token in range(step + 1) if life[token] == step]
    return (
        f"Step {step + 1} · cache [{', '.join(map(str, held))}] · entered {step + 1} · "
        f"evicted {', '.join(map(str, left)) or 'none'}"
    )


def test_keys_and_buttons_go_through_the_steps(page: Any) -> None:
    player = page.locator("section[aria-label='step player']").first
    says = player.locator(".kv-headline")
    assert says.inner_text() == headline(5)
    player.click(position={"x": 3, "y": 3})
    for key, step in [("ArrowRight", 6), ("ArrowLeft", 5), ("End", component_data.COUNT - 1), ("Home", 0)]:
        page.keyboard.press(key)
        assert says.inner_text() == headline(step)
    assert player.get_by_role("button", name="Back").is_disabled()
    for step in range(1, 12):
        player.get_by_role("button", name="Next").click()
        assert says.inner_text() == headline(step)
    player.locator("input[type=range]").fill("30")
    assert says.inner_text() == headline(30)
    player.locator("select[aria-label=head]").select_option("1")
    assert says.inner_text() == headline(30, head=1)


def test_slots_and_text_show_what_the_headline_says(page: Any) -> None:
    player = page.locator("section[aria-label='step player']").first
    life = component_data.lifetimes(0)[0]
    held = [token for token in range(6) if life[token] > 5]
    full = player.locator(".kv-slots .kv-slot:not(.kv-empty)")
    shown = full.locator(".kv-token").all_text_contents()
    assert shown == [component_data.TOKENS[token] for token in held]
    assert full.locator(".kv-number").all_text_contents() == [str(token + 1) for token in held]
    assert player.locator(".kv-slots .kv-entered .kv-number").all_text_contents() == ["6"]
    spans = player.locator(".kv-text span")
    assert spans.all_text_contents() == component_data.TOKENS
    kinds = [name.split()[0] for name in spans.evaluate_all("all => all.map((one) => one.className)")]
    gone = ["kv-held" if token in held else "kv-gone" for token in range(6)]
    assert kinds == gone + ["kv-later"] * (component_data.COUNT - 6)


def test_tokens_stay_literal(page: Any) -> None:
    """Known fault 153: a token that looks like markup is taken as markup."""
    assert page.locator("section.kv img, section.kv script, section.kv b").count() == 0
    for place in ("kv-text span", "kv-strip button"):
        assert page.locator(f".{place}").first.text_content() == "<img src=x onerror=alert(1)>"


def test_space_plays_and_stops(page: Any) -> None:
    player = page.locator("section[aria-label='step player']").first
    player.locator("select[aria-label=speed]").select_option("25")
    player.click(position={"x": 3, "y": 3})
    page.keyboard.press("Space")
    page.wait_for_timeout(400)
    page.keyboard.press("Space")
    stopped = player.locator(".kv-headline").inner_text()
    assert int(re.match(r"Step (\d+)", stopped)[1]) > 6  # type: ignore[index]
    page.wait_for_timeout(200)
    assert player.locator(".kv-headline").inner_text() == stopped


def test_the_step_survives_a_rerun_and_new_data(page: Any) -> None:
    player = page.locator("section[aria-label='step player']").first
    player.locator("input[type=range]").fill("17")
    page.locator("button[aria-label^='layer 0, head 0 ']").click()
    page.get_by_text("cell 0 0", exact=True).wait_for()
    assert player.locator(".kv-headline").inner_text() == headline(17)
    page.get_by_label("seed").fill("3")
    page.get_by_label("seed").press("Enter")
    page.get_by_text(headline(17, seed=3)).wait_for()


def test_a_ring_overwrites_the_slot_of_number_mod_budget(page: Any) -> None:
    ring = page.locator("section[aria-label='step player']").nth(1)
    assert ring.locator(".kv-headline").inner_text() == "Step 8 · cache [5, 6, 7, 8] · entered 8 · evicted 4"
    assert ring.locator(".kv-slots .kv-number").all_text_contents() == [
        *("slot 0: 8", "slot 1: 5", "slot 2: 6", "slot 3: 7")
    ]
    assert ring.locator(".kv-former").all_text_contents() == ["4 four"]
    assert ring.locator(".kv-left .kv-chip").all_text_contents() == ["4 four"]


def test_a_click_or_enter_on_a_cell_reaches_python_and_keeps_the_focus(page: Any) -> None:
    """Known fault 157: a click on a cell of a map is not heard."""
    page.locator("button[aria-label^='layer 4, head 7 (KV head 2)']").click()
    page.get_by_text("cell 4 7", exact=True).wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.get_by_text("cell 5 6", exact=True).wait_for()
    assert focused(page).startswith("layer 5, head 6")
    assert page.locator(".kv-grid [aria-selected=true]").count() == 1


def test_a_click_on_a_token_makes_it_the_query(page: Any) -> None:
    page.locator(".kv-strip button").nth(9).click()
    page.get_by_text("query 9", exact=True).wait_for()
    chips = page.locator(".kv-strip button")
    assert "kv-query" in (chips.nth(9).get_attribute("class") or "")
    assert "not in the cache" in (chips.nth(2).get_attribute("title") or "")
    assert "comes after" in (chips.nth(10).get_attribute("title") or "")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_text("query 10", exact=True).wait_for()
    assert focused(page).startswith("10 ")


def focused(page: Any) -> str:
    """The label of the focused element, looked for through shadow roots."""
    into = "while (at.shadowRoot) at = at.shadowRoot.activeElement"
    label: str = page.evaluate(f"() => {{ let at = document.activeElement; {into}; return at.ariaLabel }}")
    return label


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_page(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(300)
    wide = "all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    assert page.locator("section.kv").evaluate_all(wide) == 0

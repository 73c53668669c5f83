"""The app in a real browser, as a visitor meets it."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import picture, settle

Open = Callable[[str], Page]
LINK = (
    "?policy=streaming%3Abudget%3D24%2Csinks%3D2&positions=slot&text=repeats&tokens=96&prompt_tokens=40"
    "&b_policy=random%3Abudget%3D24%2Cseed%3D5&layer=20&head=7&scale=linear&measure=entropy&seed=3"
)


def set_number(page: Page, label: str, value: str) -> None:
    field = page.get_by_label(label, exact=True)
    field.fill(value)
    field.press("Enter")
    settle(page)


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=re.compile(label)).first.click()
    page.get_by_role("option", name=option).click()
    settle(page)


def test_a_link_opens_the_same_picture_on_a_fresh_server(fresh_server: str, server: str, open_page: Open) -> None:
    """The first page ever asked of a server, in a browser that has never been here."""
    first = picture(open_page(f"{fresh_server}/Cache{LINK}"))
    assert first == picture(open_page(f"{server}/Cache{LINK}"))
    assert "2 sinks" in first[0]
    assert picture(open_page(f"{fresh_server}/Attention{LINK}")) == picture(open_page(f"{server}/Attention{LINK}"))


def test_the_address_bar_opened_in_a_second_browser_shows_the_same(server: str, open_page: Open) -> None:
    page = open_page(f"{server}/Cache?text=story&tokens=40")
    set_number(page, "Tokens", "80")
    choose(page, "Policy A", "Sliding window")
    set_number(page, "Layer", "3")
    assert "80 tokens" in picture(page)[0] and "layer 3" in picture(page)[0]
    again = open_page(page.url)
    assert picture(again) == picture(page)
    again.reload()
    settle(again)
    assert picture(again) == picture(page)


def test_settings_survive_page_changes_and_back(server: str, open_page: Open) -> None:
    page = open_page(f"{server}/")
    set_number(page, "Tokens", "90")
    for name in ("Cache", "Attention"):
        page.get_by_role("link", name=name, exact=True).click()
        settle(page)
        expect(page.get_by_label("Tokens", exact=True)).to_have_value("90")
        assert "tokens=90" in page.url
    for _ in range(2):
        page.go_back()
        settle(page)
        expect(page.get_by_label("Tokens", exact=True)).to_have_value("90")


def test_back_undoes_one_change(server: str, open_page: Open) -> None:
    page = open_page(f"{server}/Cache")
    before = picture(page)
    set_number(page, "Tokens", "70")
    changed = picture(page)
    set_number(page, "Tokens", "75")
    page.go_back()
    settle(page)
    assert picture(page) == changed
    page.go_back()
    settle(page)
    assert picture(page) == before


def test_back_undoes_an_example(server: str, open_page: Open) -> None:
    page = open_page(f"{server}/Cache?text=story&tokens=40&policy=window:budget=9")
    before = picture(page)
    page.get_by_role("button", name="A ring of 4 slots").click()
    settle(page)
    assert picture(page) != before
    page.go_back()
    settle(page)
    assert picture(page) == before


def test_the_toy_shows_the_sources_example_step_by_step(server: str, open_page: Open) -> None:
    page = open_page(f"{server}/Cache")
    page.get_by_role("button", name="A window of 4 slides over twelve words").click()
    settle(page)
    player = page.locator("[data-testid=stMain] [data-testid^=stBidiComponent]").first
    slider = player.get_by_role("slider")
    slider.focus()
    slider.press("Home")
    for _ in range(6):
        slider.press("ArrowRight")
    expect(player).to_contain_text("Step 7 · cache [4, 5, 6, 7]")
    slider.press("ArrowRight")
    expect(player).to_contain_text("Step 8 · cache [5, 6, 7, 8] · entered 8 · evicted 4")
    slider.press("ArrowRight")
    expect(player).to_contain_text("Step 9 · cache [6, 7, 8, 9] · entered 9 · evicted 5")
    download_twice(page, "lifetimes A")


def download_twice(page: Page, name: str) -> None:
    """The first download ran the page again, and a second one soon after it was lost."""
    files: list[str] = []
    page.on("download", lambda file: files.append(file.suggested_filename))
    page.get_by_role("button", name=f"Numbers: {name}").click()
    button = page.get_by_role("button", name=f"Download {name} as CSV")
    for pause in (50, 200, 500):
        button.click()
        page.wait_for_timeout(pause)
    assert files == [f"kvviz-{name.replace(' ', '-')}.csv"] * 3


def test_choosing_a_head_in_the_overview_changes_the_map(server: str, open_page: Open) -> None:
    """Known fault 157: a click on a cell of a map is not heard."""
    page = open_page(f"{server}/Attention?text=story&tokens=64")
    page.get_by_role("gridcell", name=re.compile("layer 2, head 7")).click()
    settle(page)
    assert "layer 2, head 7" in picture(page)[0]
    expect(page.get_by_label("Query head", exact=True)).to_have_value("7")
    assert "layer=2" in page.url and "head=7" in page.url


def test_a_bad_link_says_what_was_wrong_and_leaves_a_usable_page(server: str, open_page: Open) -> None:
    """Once in a browser; more links and pages are tried without one in tests/ui."""
    page = open_page(f"{server}/Cache?policy=windw:budget=4&tokens=0&layer=999999&scale=pink&text=toy")
    assert len(picture(page)) > 1  # a headline and at least one figure
    assert page.get_by_text("Traceback").count() == 0
    assert page.locator("[data-testid=stException]").count() == 0
    expect(page.get_by_text("did you mean 'window'")).to_be_visible()
    expect(page.get_by_text("tokens='0' must be a whole number")).to_be_visible()


def test_knobs_that_contradict_each_other_keep_the_last_picture(server: str, open_page: Open) -> None:
    page = open_page(f"{server}/Cache?policy=streaming:budget=8,sinks=4&tokens=40&text=story")
    before = picture(page)
    set_number(page, "A's sinks: first tokens always kept", "8")
    expect(page.get_by_text("choose at most 7 sinks or a larger budget").first).to_be_visible()
    assert "40 tokens" in picture(page)[0] and len(picture(page)) == len(before)


def test_hostile_text_stays_text(server: str, open_page: Open) -> None:
    page = open_page(f"{server}/Cache?text=unicode&tokens=388&policy=window:budget=32")
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.reload()  # what ran when the page was opened went by before anybody listened
    settle(page)
    assert "388 tokens" in picture(page)[0]
    assert page.locator("script:not([src])", has_text="alert").count() == 0 and dialogs == []
    page.get_by_role("link", name="Attention", exact=True).click()
    settle(page)
    assert "388" in page.url and page.locator("[data-testid=stException]").count() == 0


def test_a_newer_setting_ends_the_older_run(server: str, open_page: Open) -> None:
    page = open_page(f"{server}/Cache?text=language-reference&tokens=64")
    page.get_by_label("Tokens", exact=True).fill("2048")
    page.get_by_label("Tokens", exact=True).press("Enter")
    page.get_by_text("reads 2,048 tokens").wait_for()
    set_number(page, "Tokens", "65")
    assert "65 tokens" in picture(page)[0]
    page.wait_for_timeout(1500)
    assert "65 tokens" in picture(page)[0] and page.get_by_text("reads 2,048 tokens").count() == 0


def test_a_run_can_be_cancelled_and_started_again(server: str, open_page: Open) -> None:
    """The last picture stays, nothing starts again by itself, and the next setting is computed as usual."""
    page = open_page(f"{server}/Cache?text=language-reference&tokens=70")
    before = picture(page)
    page.get_by_label("Tokens", exact=True).fill("2040")
    page.get_by_label("Tokens", exact=True).press("Enter")
    page.get_by_text("reads 2,040 tokens").wait_for()
    assert page.locator("[data-testid=stPlotlyChart] .main-svg").count() > 0  # the old figures, greyed
    page.get_by_role("button", name="Cancel").click()
    settle(page)
    expect(page.get_by_text("This run was stopped. The figures still show the previous settings.")).to_be_visible()
    assert picture(page) == before and "tokens=2040" in page.url
    page.get_by_role("radio", name="B", exact=True).click()  # another control: the stopped run must not start again
    settle(page)
    expect(page.get_by_text("This run was stopped.")).to_be_visible()
    set_number(page, "Tokens", "71")
    assert "71 tokens" in picture(page)[0] and page.get_by_text("This run was stopped.").count() == 0


def test_a_stream_grows_and_what_is_read_stays_when_it_is_cancelled(server: str, open_page: Open) -> None:
    page = open_page(f"{server}/Quality?text=story&tokens=25&stream_tokens=32&policy=window:budget=8")
    assert "In the second half of 32 tokens A (Sliding window, budget 8) loses" in picture(page)[0]
    page.get_by_label("Tokens of the stream", exact=True).fill("2048")
    page.get_by_label("Tokens of the stream", exact=True).press("Enter")
    expect(page.locator("h2").first).to_contain_text("of 2,048 tokens")
    page.get_by_role("button", name="Cancel").click()
    settle(page)
    expect(page.get_by_text(re.compile("Not read to the end: .* up to token [0-9,]+ of 2,048"))).to_be_visible()
    assert " of 2,048 tokens" in picture(page)[0]
    # another control: what was stopped must not start again
    page.get_by_test_id("stCheckbox").get_by_text("Show every token").click()
    settle(page)
    expect(page.get_by_text("Not read to the end")).to_be_visible()
    set_number(page, "Tokens of the stream", "32")
    page.get_by_role("combobox", name="Setups beside A and B").fill("h2o:budget=8")
    page.get_by_role("combobox", name="Setups beside A and B").press("Enter")
    settle(page)
    assert "; C (H2O, budget 8" in picture(page)[0] and "h2o%3Abudget%3D8" in page.url


def test_the_memory_page_counts_at_once_and_runs_the_model_on_request(server: str, open_page: Open) -> None:
    page = open_page(f"{server}/Memory?policy=streaming:budget=8,sinks=2&tokens=16&mem_part=model")
    expect(page.get_by_text("Llama-3.1-8B at 131,072 tokens: 16.00 GiB (17.18 GB)").first).to_be_visible()
    set_number(page, "Sequences", "4")
    expect(page.get_by_text("64.00 GiB (68.72 GB)").first).to_be_visible()
    page.get_by_role("button", name="Measure the tensors").click()
    expect(page.get_by_text("equal (the formula in")).to_have_count(2)
    page.get_by_role("button", name="Merge them").click()
    expect(page.get_by_text("trained into a model").first).to_be_visible()
    expect(page.get_by_text("equal (the formula in")).to_have_count(2)


def test_on_a_phone_a_wide_table_scrolls_by_itself_and_the_settings_close(server: str, open_page: Open) -> None:
    """The settings cover a narrow screen, and they stayed there when a page was chosen among them."""
    page = open_page(f"{server}/Memory?policy=streaming:budget=32&tokens=40")
    page.set_viewport_size({"width": 400, "height": 900})
    page.locator("table").first.wait_for()
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollWidth <= innerWidth")
    page.get_by_test_id("stExpandSidebarButton").click()
    settings = page.get_by_test_id("stSidebar")
    set_number(page, "Tokens", "41")
    expect(settings).to_have_attribute("data-collapsed", "false")
    page.get_by_role("link", name="Cache", exact=True).click()
    expect(settings).to_have_attribute("data-collapsed", "true")
    assert "41 tokens" in picture(page)[0]

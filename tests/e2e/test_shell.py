"""The shell in a real browser: keyboard, dialogs, toasts and charts, and all of it without scripts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.e2e.browsers import logged_in, opened
from tests.e2e.sample_product import SampleProduct

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def context(browser: Browser, sample: SampleProduct) -> Iterator[BrowserContext]:
    browser_context = browser.new_context(base_url=sample.url, locale="en-US")
    logged_in(browser_context, name="admin")
    yield browser_context
    browser_context.close()


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def home(context: BrowserContext, complaints: list[str]) -> Iterator[Page]:
    with opened(context, "/", found=complaints.append) as page:
        yield page
    assert complaints == []


@pytest.fixture
def design(context: BrowserContext, complaints: list[str]) -> Iterator[Page]:
    with opened(context, "/design", found=complaints.append) as page:
        yield page
    assert complaints == []


def test_a_slash_searches_and_the_arrows_and_enter_go_there(home: Page) -> None:
    home.keyboard.press("/")
    field = home.get_by_role("searchbox")
    expect(field).to_be_focused()
    home.keyboard.type("playgr")
    found = home.locator("#palette-results a")
    expect(found).to_have_count(1)
    home.keyboard.press("ArrowDown")
    expect(found).to_be_focused()
    home.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    home.keyboard.press("Enter")
    expect(home).to_have_url(re.compile("/playground$"))


def test_g_and_a_letter_go_but_not_while_somebody_types(home: Page) -> None:
    home.keyboard.press("/")
    home.keyboard.type("gj")
    expect(home).to_have_url(re.compile("/$"))
    home.keyboard.press("Escape")
    expect(home.locator("#palette")).to_be_hidden()
    home.keyboard.press("g")
    home.keyboard.press("j")
    expect(home).to_have_url(re.compile("/jobs$"))


def test_shortcuts_can_be_turned_off(home: Page) -> None:
    home.keyboard.press("?")
    switch = home.locator("#shortcuts [data-shortcuts-switch]")
    switch.uncheck()
    home.keyboard.press("Escape")
    home.keyboard.press("/")
    expect(home.locator("#palette")).to_be_hidden()
    home.get_by_role("link", name="Help").click()
    switch.check()
    home.keyboard.press("Escape")
    home.keyboard.press("/")
    expect(home.locator("#palette")).to_be_visible()


def test_a_question_keeps_the_focus_inside_and_gives_it_back(design: Page) -> None:
    opener = design.locator("#confirm-typed [data-opens-dialog]")
    opener.focus()
    design.keyboard.press("Enter")
    dialog = design.locator("#confirm-typed dialog")
    expect(dialog).to_be_visible()
    expect(dialog.locator("input[name=name]")).to_be_focused()
    design.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()


def test_what_has_to_be_typed_has_to_be_right(design: Page) -> None:
    design.locator("#confirm-typed [data-opens-dialog]").click()
    field = design.locator("#confirm-typed input[name=name]")
    field.fill("parcel")
    assert not field.evaluate("field => field.checkValidity()")
    field.fill("parcels")
    assert field.evaluate("field => field.checkValidity()")


def test_good_news_can_be_closed_and_bad_news_stay(design: Page) -> None:
    design.locator("button[value=error]").click()
    toast = design.locator("#toasts [data-toast=error]")
    expect(toast).to_be_visible()
    assert toast.get_attribute("role") == "alert"
    toast.get_by_role("button", name="Close").click()
    expect(toast).to_have_count(0)


def test_charts_are_drawn_and_read_under_the_strict_policy(design: Page, tmp_path: Path) -> None:
    drawn = design.locator(".nf-plot .main-svg:first-child")
    expect(drawn).to_have_count(6, timeout=60_000)
    lines = design.locator("[data-chart$='/lines']")
    lines.scroll_into_view_if_needed()
    lines.locator(".nf-plot").hover()
    expect(lines.locator(".hoverlayer text").first).to_be_visible()
    lines.get_by_text("Values as a table").click()
    expect(lines.locator("table tbody tr")).to_have_count(51)
    with design.expect_download() as saved:
        lines.get_by_role("button", name="Download as CSV").click()
    path = tmp_path / "lines.csv"
    saved.value.save_as(path)
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows[0] == ["step", "training (nats)", "validation (nats)", "base model (nats)"]
    assert len(rows) == 52


def test_a_chart_is_zoomed_smoothed_and_saved_by_its_options(design: Page, tmp_path: Path) -> None:
    lines = design.locator("[data-chart$='/lines']")
    neighbour = design.locator("[data-chart$='/marks']")
    expect(neighbour.locator(".nf-plot .main-svg")).not_to_have_count(0, timeout=60_000)
    expect(lines.locator(".nf-plot .main-svg")).not_to_have_count(0, timeout=60_000)
    drawn = lines.locator("path.js-line").count()
    lines.get_by_text("Chart options").click()
    whole = _last_tick(neighbour)
    lines.get_by_role("button", name="Zoom in").click()
    expect(neighbour.locator(".xtick text").last).not_to_have_text(whole)
    lines.get_by_role("button", name="Reset range").click()
    expect(neighbour.locator(".xtick text").last).to_have_text(whole)
    lines.get_by_label("Smoothing").fill("0.9")
    expect(lines.locator("path.js-line")).not_to_have_count(drawn)
    lines.get_by_label("Smoothing").fill("0")
    expect(lines.locator("path.js-line")).to_have_count(drawn)
    expect(lines.get_by_label("Logarithmic axis")).to_be_enabled()
    linear = lines.locator(".ytick text").all_text_contents()
    lines.get_by_label("Logarithmic axis").check()
    expect(lines.locator(".ytick text").first).not_to_have_text(linear[0])
    lines.get_by_label("Logarithmic axis").uncheck()
    with design.expect_download() as saved:
        lines.get_by_role("button", name="Download as PNG").click()
    path = tmp_path / "lines.png"
    saved.value.save_as(path)
    with Image.open(path) as picture:
        assert picture.height == 2 * 288
        assert len(picture.getcolors(1 << 20) or ()) > 50


def _last_tick(chart: Locator) -> str:
    return chart.locator(".xtick text").last.text_content() or ""


def test_a_gap_stays_a_gap(design: Page) -> None:
    line = design.locator("[data-chart$='/gaps'] .nf-plot path.js-line")
    expect(line).to_have_count(2, timeout=60_000)


def test_a_live_chart_grows_and_then_stops_asking(design: Page) -> None:
    live = design.locator("[data-chart$='/live']")
    live.get_by_text("Values as a table").click(timeout=60_000)
    before = live.locator("tbody tr").count()
    expect(live.locator("tbody tr")).not_to_have_count(before, timeout=60_000)


def test_a_chart_without_figures_and_one_that_failed_say_so(design: Page) -> None:
    expect(design.locator("[data-chart$='/empty']")).to_contain_text("No metrics")
    failed = design.locator("[data-chart$='/failing']")
    expect(failed.get_by_role("alert")).to_contain_text("could not be loaded")
    failed.get_by_role("button", name="Retry").click()
    expect(failed.get_by_role("alert")).to_have_count(1)


def test_charts_follow_the_theme(design: Page) -> None:
    tick = design.locator("[data-chart$='/gaps'] .xtick text").first
    expect(tick).to_be_visible(timeout=20_000)
    before = tick.evaluate("text => getComputedStyle(text).fill")
    design.evaluate("localStorage.setItem('theme', 'light')")
    design.locator("[data-theme-toggle]").click()
    expect(design.locator("html")).to_have_attribute("data-bs-theme", "dark")
    expect(tick).not_to_have_css("fill", before)
    design.evaluate("localStorage.removeItem('theme')")


def test_the_rail_is_a_drawer_on_a_phone(browser: Browser, sample: SampleProduct) -> None:
    phone = browser.new_context(
        base_url=sample.url, locale="en-US", viewport={"width": 360, "height": 740}
    )
    logged_in(phone, name="ada")
    page = phone.new_page()
    page.goto("/")
    models = page.get_by_role("navigation", name="Main").get_by_role("link", name="Models")
    expect(models).to_be_hidden()
    opener = page.get_by_role("button", name="Menu", exact=True)
    opener.click()
    expect(models).to_be_visible()
    page.keyboard.press("Escape")
    expect(models).to_be_hidden()
    expect(opener).to_be_focused()
    phone.close()


def test_without_scripts_everything_is_in_its_place(
    browser: Browser, sample: SampleProduct
) -> None:
    plain = browser.new_context(base_url=sample.url, locale="en-US", java_script_enabled=False)
    logged_in(plain, name="admin")
    page = plain.new_page()
    page.goto("/design")
    expect(
        page.locator("#confirm-plain dialog").get_by_role("button", name="Delete")
    ).to_be_visible()
    expect(page.locator(".nf-filters").get_by_role("button", name="Show")).to_be_visible()
    page.locator(".nf-search").click()
    expect(page.get_by_role("heading", name="Search", level=1)).to_be_visible()
    plain.close()

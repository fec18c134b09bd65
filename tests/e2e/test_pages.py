"""Every page in one visit: weight, keyboard, and axe in both themes and on a phone.

A page is loaded once with an empty cache. On a phone axe does not measure contrast again: the colours are those of
the wide page, and what only a phone shows is in the shell, which is measured on one page in both themes.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, CDPSession, ViewportSize, expect
from playwright.sync_api import Page as Tab

from tests.e2e.browsers import opened
from tests.e2e.pages import PAGES, Page
from tests.e2e.sample_product import SampleProduct
from tests.e2e.viewers import Viewers, contexts

pytestmark = pytest.mark.browser

WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}

#: Bytes over the wire with an empty cache, headers included, without the chart library.
MAX_BYTES = 250_000
#: The chart library is loaded after the page, and only where there are charts.
CHART_LIBRARY = "plotly"

#: Milliseconds until something can be read; recorded, not tested: it depends on the load of the machine.
FIRST_CONTENT = (
    """() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0"""
)

#: Rules of WCAG 2.2 AA that a machine can check; best practices are left out.
WCAG = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
}
#: What a theme can break: the elements stay the same.
CONTRAST = {
    "runOnly": {"type": "rule", "values": ["color-contrast"]},
    "resultTypes": ["violations"],
}
WCAG_WITHOUT_CONTRAST = {**WCAG, "rules": {"color-contrast": {"enabled": False}}}
SERIOUS = ("serious", "critical")

#: Stops of the Tab key that are checked on a long page: its head, its sidebar and its first rows.
MAX_STOPS = 60
#: Presses of the Tab key between two looks at what they reached.
PRESSES = 12
#: Records each element that takes the focus: whether its focus is visible, and whether it has a size.
RECORD_STOPS = """() => {
  window.tabStops = [];
  const numbers = new Map();
  const ringed = (style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0
    || style.boxShadow !== "none";
  document.addEventListener("focusin", ({target}) => {
    const box = target.getBoundingClientRect();
    const around = target.closest("label, .form-check, .form-selectgroup-item, .plotly, .modebar");
    if (!numbers.has(target)) numbers.set(target, numbers.size);
    window.tabStops.push({
      number: numbers.get(target),
      what: target.tagName.toLowerCase() + (target.id && `#${target.id}`)
        + ` "${(target.textContent || "").trim().slice(0, 40)}"`,
      href: target.getAttribute("href") || "",
      seen: [target, ...target.querySelectorAll("*"), ...(around ? [around] : [])]
        .some((one) => ringed(getComputedStyle(one))),
      sized: box.width > 0 && box.height > 0,
    });
  });
}"""
#: How many elements can take the focus: shown, enabled and in the tab order.
REACHABLE = """() => [...document.querySelectorAll(
  "a[href], button, input, select, textarea, summary, [tabindex]")]
  .filter((one) => one.tabIndex >= 0 && !one.disabled && one.type !== "hidden"
    && !one.closest("dialog:not([open]), [inert], details:not([open]) > :not(summary)")
    && one.checkVisibility({visibilityProperty: true})).length"""


@dataclass(slots=True, kw_only=True)
class Traffic:
    """Bytes over the wire by URL."""

    sizes: dict[str, float] = field(default_factory=dict)

    @property
    def size(self) -> float:
        """Without the chart library."""
        return sum(size for url, size in self.sizes.items() if CHART_LIBRARY not in url)

    @property
    def chart_library(self) -> float:
        return sum(size for url, size in self.sizes.items() if CHART_LIBRARY in url)

    def record(self, session: CDPSession) -> None:
        """Count every response of the session from now on, with the cache off."""
        urls: dict[str, str] = {}

        def response_received(event: dict[str, Any]) -> None:
            if not str(event["response"]["url"]).startswith("data:"):
                urls[str(event["requestId"])] = str(event["response"]["url"])

        def loading_finished(event: dict[str, Any]) -> None:
            if url := urls.get(str(event["requestId"])):
                self.sizes[url] = self.sizes.get(url, 0.0) + float(event["encodedDataLength"])

        session.on("Network.responseReceived", response_received)
        session.on("Network.loadingFinished", loading_finished)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})


@pytest.fixture(scope="module")
def viewers(browser: Browser, sample: SampleProduct) -> Iterator[Viewers]:
    with contexts(browser, sample, color_scheme="light", viewport=WIDE) as by_account:
        yield by_account


@pytest.fixture(scope="module")
def page_sizes() -> Iterator[dict[str, tuple[float, float]]]:
    """Bytes, and milliseconds to the first content, by page; written to the file ``NINEFOLD_FIGURES``."""
    by_page: dict[str, tuple[float, float]] = {}
    yield by_page
    if path := os.environ.get("NINEFOLD_FIGURES"):
        Path(path).write_text(json.dumps(by_page, indent=2))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_a_page_is_light_accessible_and_usable_by_keyboard(
    viewers: Viewers,
    sample: SampleProduct,
    page_sizes: dict[str, tuple[float, float]],
    page: Page,
) -> None:
    problems: list[str] = []
    traffic = Traffic()
    address = page.address(sample.names)
    with opened(
        viewers[page.viewer], address, found=problems.append, session=traffic.record
    ) as tab:
        page_sizes[page.title] = traffic.size, float(tab.evaluate(FIRST_CONTENT))
        problems += _weight(traffic, page, origin=sample.url)
        problems += _keyboard(tab, skip_link=not page.stranger)
        problems += violations(tab, "light", WCAG)
        tab.emulate_media(color_scheme="dark")
        problems += violations(tab, "dark", CONTRAST)
        tab.emulate_media(color_scheme="light")
        tab.set_viewport_size(PHONE)
        problems += violations(tab, "phone", WCAG_WITHOUT_CONTRAST)
    assert not problems, "\n".join(problems)


def test_the_drawer_of_a_phone_has_contrast_in_both_themes(viewers: Viewers) -> None:
    problems: list[str] = []
    with opened(viewers["person"], "/jobs", found=problems.append) as tab:
        tab.set_viewport_size(PHONE)
        tab.locator(".nf-drawer-open").first.click()
        for theme in ("light", "dark"):
            tab.emulate_media(color_scheme=theme)
            problems += violations(tab, f"phone, {theme}", CONTRAST)
    assert not problems, "\n".join(problems)


def test_the_skip_link_leads_past_the_rail(viewers: Viewers) -> None:
    with opened(viewers["person"], "/jobs", found=_ignored) as tab:
        tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        tab.keyboard.press("Tab")
        assert tab.evaluate("() => document.querySelector('main').contains(document.activeElement)")


def test_a_dialog_closes_by_escape_and_returns_the_focus(
    viewers: Viewers, sample: SampleProduct
) -> None:
    address = f"/jobs/{sample.names['job.running']}"
    with opened(viewers["person"], address, found=_ignored) as tab:
        button = tab.get_by_role("button", name="Cancel").first
        button.focus()
        tab.keyboard.press("Enter")
        dialog = tab.locator("dialog[open]")
        expect(dialog).to_be_visible()
        assert tab.evaluate(
            "() => document.querySelector('dialog[open]').contains(document.activeElement)"
        )
        tab.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(button).to_be_focused()


def test_the_slash_key_focuses_the_search(viewers: Viewers) -> None:
    with opened(viewers["person"], "/jobs", found=_ignored) as tab:
        tab.keyboard.press("/")
        expect(tab.get_by_role("searchbox").first).to_be_focused()


def test_a_job_is_submitted_without_a_mouse(viewers: Viewers, sample: SampleProduct) -> None:
    address = f"/jobs/new/finetune?model={sample.names['model.tuned']}"
    with opened(viewers["person"], address, found=_ignored) as tab:
        dataset = tab.locator("select[name=dataset_version]")
        dataset.focus()
        tab.keyboard.press("ArrowDown")
        name = tab.locator("input[name=output_name]")
        name.focus()
        tab.keyboard.press("Control+A")
        tab.keyboard.type("typed-by-hand")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/jobs/*", timeout=60_000)
        expect(tab.locator("h1")).to_be_visible()
        assert "/new/" not in tab.url


def violations(
    tab: Tab, appearance: str, options: dict[str, Any], *, within: str | None = None
) -> list[str]:
    """Serious violations that axe finds.

    :param appearance: theme and size, for the messages.
    :param within: a CSS selector of the part to check; without it the whole page.
    """
    if not tab.evaluate("() => 'axe' in window"):
        tab.evaluate(AXE_SCRIPT)
    # A target that the sticky header covers would count as too small.
    found = tab.evaluate(
        """async ([within, options]) => {
          document.activeElement?.blur();
          window.scrollTo(0, 0);
          return (await axe.run(within ?? document, options)).violations;
        }""",
        [within, options],
    )
    problems = []
    for violation in found:
        if violation["impact"] in SERIOUS:
            places = [" ".join(map(str, node["target"])) for node in violation["nodes"]]
            problems.append(
                f"{appearance}: {violation['id']}: {violation['help']}: {', '.join(places[:6])}"
            )
    return problems


def _ignored(_complaint: str) -> None:
    """Complaints of the browser are the concern of the test of the page itself."""


def _weight(traffic: Traffic, page: Page, *, origin: str) -> Iterator[str]:
    origins = {f"{urlsplit(url).scheme}://{urlsplit(url).netloc}" for url in traffic.sizes}
    if origins != {origin}:
        yield f"loads from {origins}, not only from {origin}"
    if traffic.size > MAX_BYTES:
        largest = sorted(traffic.sizes.items(), key=lambda one: -one[1])[:5]
        yield f"weighs {traffic.size:.0f} bytes, more than {MAX_BYTES}: {largest}"
    if traffic.chart_library and not page.charts:
        yield "loads the chart library without charts"


def _keyboard(tab: Tab, *, skip_link: bool) -> Iterator[str]:
    reachable = tab.evaluate(REACHABLE)
    # A form may have taken the focus: begin at the top, as a reader does.
    tab.evaluate("() => { document.activeElement?.blur(); window.scrollTo(0, 0); }")
    tab.evaluate("() => { document.body.tabIndex = -1; document.body.focus(); }")
    tab.evaluate(RECORD_STOPS)
    stops = _stops(tab)
    if not stops:
        yield "keyboard: nothing can be reached"
        return
    if skip_link and stops[0]["href"] != "#main":
        yield f"keyboard: the first stop is {stops[0]['what']}, not the skip link"
    yield from (f"keyboard: {stop['what']} has no size" for stop in stops if not stop["sized"])
    yield from (f"keyboard: {stop['what']} shows no focus" for stop in stops if not stop["seen"])
    # A date has one stop for each of its parts.
    numbers = [number for number, _same in itertools.groupby(stop["number"] for stop in stops)]
    again = [stop["what"] for stop in stops if numbers.count(stop["number"]) > 1]
    if again:
        yield f"keyboard: the focus returns to {again}"
    # Radio buttons of one group are one stop.
    if len(stops) < min(reachable, MAX_STOPS) * 0.7:
        yield f"keyboard: {len(stops)} stops of {reachable} reachable elements"


def _stops(tab: Tab) -> list[dict[str, Any]]:
    """What takes the focus while Tab is pressed, until the first element has it again."""
    stops: list[dict[str, Any]] = []
    for _ in range(0, MAX_STOPS, PRESSES):
        for _ in range(PRESSES):
            tab.keyboard.press("Tab")
        stops = tab.evaluate("() => window.tabStops")
        if first_again := [
            place for place, stop in enumerate(stops) if place and not stop["number"]
        ]:
            return stops[: first_again[0]]
    return stops

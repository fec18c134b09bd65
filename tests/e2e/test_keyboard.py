"""Every page can be used with the keyboard alone: the skip link first, focus seen, no trap."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from tests.e2e.browsers import opened
from tests.e2e.pages import PAGES, Page
from tests.e2e.sample_product import SampleProduct
from tests.e2e.viewers import Viewers, contexts

pytestmark = pytest.mark.browser

#: Stops of the Tab key that are looked at on a long page: its head, its rail and the first of its rows.
MOST_STOPS = 60

#: What has the focus, whether that can be seen, and whether it is on the page rather than behind a corner.
FOCUS = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const look = getComputedStyle(at), box = at.getBoundingClientRect();
  const ringed = (style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0
    || style.boxShadow !== "none";
  const around = at.closest("label, .form-check, .form-selectgroup-item, .plotly, .modebar");
  window.seenStops ||= new Map();
  if (!window.seenStops.has(at)) window.seenStops.set(at, window.seenStops.size);
  return {
    number: window.seenStops.get(at),
    what: `${at.tagName.toLowerCase()}${at.id ? "#" + at.id : ""} "${(at.textContent || "").trim().slice(0, 40)}"`,
    href: at.getAttribute("href") || "",
    seen: ringed(look) || (around !== null && ringed(getComputedStyle(around)))
      || [...at.querySelectorAll("*")].some((one) => ringed(getComputedStyle(one))),
    sized: box.width > 0 && box.height > 0,
  };
}"""
#: How many stops there should be: what is shown, takes part and was not taken out of the order.
REACHABLE = """() => [...document.querySelectorAll(
  "a[href], button, input, select, textarea, summary, [tabindex]")]
  .filter((one) => one.tabIndex >= 0 && !one.disabled && one.type !== "hidden"
    && !one.closest("dialog:not([open]), [inert], details:not([open]) > :not(summary)")
    && one.checkVisibility({visibilityProperty: true})).length"""


@pytest.fixture(scope="module")
def viewers(browser: Browser, sample: SampleProduct) -> Iterator[Viewers]:
    with contexts(browser, sample, viewport={"width": 1440, "height": 900}) as made:
        yield made


def _stops(tab: Tab, *, most: int) -> list[dict[str, Any]]:
    """What has the focus after each press of Tab, until it comes round or leaves the page."""
    stops: list[dict[str, Any]] = []
    for _ in range(most):
        tab.keyboard.press("Tab")
        stop = tab.evaluate(FOCUS)
        if stop is None or (stops and stop["number"] == 0):
            break
        stops.append(stop)
    return stops


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_the_tab_key_goes_through_the_whole_page(
    viewers: Viewers, sample: SampleProduct, page: Page
) -> None:
    complaints: list[str] = []
    address = page.address(sample.names)
    with opened(viewers[page.viewer], address, found=complaints.append) as tab:
        reachable = tab.evaluate(REACHABLE)
        tab.evaluate("() => { document.activeElement?.blur(); window.scrollTo(0, 0); }")
        # A form may have taken the focus: begin at the top, as a reader does.
        tab.evaluate("() => { document.body.tabIndex = -1; document.body.focus(); }")
        stops = _stops(tab, most=MOST_STOPS)
    assert stops, "nothing can be reached"
    if not page.stranger:
        assert stops[0]["href"] == "#main", f"first comes {stops[0]['what']}, not the skip link"
    assert [stop["what"] for stop in stops if not stop["sized"]] == []
    assert [stop["what"] for stop in stops if not stop["seen"]] == []
    # A date has a stop for each of its parts.
    numbers = [number for number, _same in itertools.groupby(stop["number"] for stop in stops)]
    again = [stop["what"] for stop in stops if numbers.count(stop["number"]) > 1]
    assert again == [], "the focus comes back to where it was"
    # Radio buttons of one group are one stop.
    assert len(stops) >= min(reachable, MOST_STOPS) * 0.7


def test_the_skip_link_leads_past_the_rail(viewers: Viewers) -> None:
    with opened(viewers["person"], "/jobs", found=lambda _said: None) as tab:
        tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        tab.keyboard.press("Tab")
        assert tab.evaluate("() => document.querySelector('main').contains(document.activeElement)")


def test_a_dialog_closes_by_escape_and_gives_the_focus_back(
    viewers: Viewers, sample: SampleProduct
) -> None:
    address = f"/jobs/{sample.names['job.running']}"
    with opened(viewers["person"], address, found=lambda _said: None) as tab:
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


def test_the_slash_key_leads_to_the_search(viewers: Viewers) -> None:
    with opened(viewers["person"], "/jobs", found=lambda _said: None) as tab:
        tab.keyboard.press("/")
        expect(tab.get_by_role("searchbox").first).to_be_focused()


def test_a_job_is_asked_for_without_a_mouse(viewers: Viewers, sample: SampleProduct) -> None:
    address = f"/jobs/new/finetune?model={sample.names['model.tuned']}"
    with opened(viewers["person"], address, found=lambda _said: None) as tab:
        chosen = tab.locator("select[name=dataset_version]")
        chosen.focus()
        tab.keyboard.press("ArrowDown")
        name = tab.locator("input[name=output_name]")
        name.focus()
        tab.keyboard.press("Control+A")
        tab.keyboard.type("typed-by-hand")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/jobs/*", timeout=15_000)
        expect(tab.locator("h1")).to_be_visible()
        assert "/new/" not in tab.url

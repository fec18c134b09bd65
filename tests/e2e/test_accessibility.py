"""axe looks at every page, in both themes and on a phone: nothing serious anywhere.

On a phone it does not measure contrasts again, which takes it longer than all else: the colours are those of the
wide page. What only a phone shows is of the shell, and measured on one page in both themes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ViewportSize
from playwright.sync_api import Page as Tab

from tests.e2e.browsers import opened
from tests.e2e.pages import PAGES, Page
from tests.e2e.sample_product import SampleProduct
from tests.e2e.viewers import Viewers, contexts

pytestmark = pytest.mark.browser

#: What WCAG 2.2 AA can be asked by machine; matters of taste are left out.
OPTIONS = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
}
SERIOUS = ("serious", "critical")
#: What another theme can break: the elements stay the same.
CONTRAST = {
    "runOnly": {"type": "rule", "values": ["color-contrast"]},
    "resultTypes": ["violations"],
}
WITHOUT_CONTRAST = {**OPTIONS, "rules": {"color-contrast": {"enabled": False}}}
WIDE = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def viewers(browser: Browser, sample: SampleProduct) -> Iterator[Viewers]:
    with contexts(browser, sample, color_scheme="light", viewport=WIDE) as made:
        yield made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_axe_finds_nothing_serious(viewers: Viewers, sample: SampleProduct, page: Page) -> None:
    problems = found(viewers[page.viewer], page.address(sample.names))
    assert not problems, "\n".join(problems)


def test_what_only_a_phone_shows_has_contrast_too(viewers: Viewers) -> None:
    problems: list[str] = []
    with opened(viewers["person"], "/jobs", found=problems.append) as tab:
        tab.set_viewport_size(PHONE)
        tab.locator(".nf-drawer-open").first.click()
        for theme in ("light", "dark"):
            tab.emulate_media(color_scheme=theme)
            problems += violations(tab, f"phone, {theme}", CONTRAST)
    assert not problems, "\n".join(problems)


def found(context: BrowserContext, address: str) -> list[str]:
    """Violations, each with its look, rule and elements; what the browser complained of as well."""
    complaints: list[str] = []
    with opened(context, address, found=complaints.append) as tab:
        complaints += violations(tab, "light", OPTIONS)
        tab.emulate_media(color_scheme="dark")
        complaints += violations(tab, "dark", CONTRAST)
        tab.emulate_media(color_scheme="light")
        tab.set_viewport_size(PHONE)
        complaints += violations(tab, "phone", WITHOUT_CONTRAST)
    return complaints


def violations(
    tab: Tab, look: str, options: dict[str, Any], *, within: str | None = None
) -> list[str]:
    """:param within: a CSS selector of the part to look at; without it the whole page."""
    results: dict[str, Any] = Axe().run(tab, context=within, options=options).response
    found = []
    for violation in results["violations"]:
        if violation["impact"] in SERIOUS:
            places = [" ".join(map(str, node["target"])) for node in violation["nodes"]]
            found.append(f"{look}: {violation['id']}: {violation['help']}: {', '.join(places[:6])}")
    return found

"""The console of queues in a browser: told before it is saved, usable by everybody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browsers import opened
from tests.e2e.pages import CONSOLE, Page
from tests.e2e.sample_product import SampleProduct
from tests.e2e.test_pages import CONTRAST, PHONE, WCAG, WIDE, violations
from tests.e2e.viewers import Viewers, contexts

pytestmark = pytest.mark.browser

#: What stands in the admin's frame is ours.
OURS = "main.qc"


@pytest.fixture(scope="module")
def viewers(browser: Browser, sample: SampleProduct) -> Iterator[Viewers]:
    with contexts(browser, sample, color_scheme="light", viewport=WIDE) as by_account:
        yield by_account


@pytest.mark.parametrize("page", CONSOLE, ids=lambda page: page.title)
def test_axe_finds_nothing_serious_in_the_console(
    viewers: Viewers, sample: SampleProduct, page: Page
) -> None:
    found: list[str] = []
    with opened(viewers["staff"], page.address(sample.names), found=found.append) as tab:
        found += violations(tab, "light", WCAG, within=OURS)
        tab.emulate_media(color_scheme="dark")
        found += violations(tab, "dark", CONTRAST, within=OURS)
        tab.emulate_media(color_scheme="light")
        tab.set_viewport_size(PHONE)
        found += violations(tab, "phone", WCAG, within=OURS)
        wide = tab.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
    assert not found, "\n".join(found)
    assert wide <= 0, f"the page is {wide} px wider than a phone"


def test_what_a_change_would_do_is_told_while_it_is_typed(
    viewers: Viewers, sample: SampleProduct
) -> None:
    found: list[str] = []
    address = f"/admin/quotas/queue/{sample.names['queue.key']}/change/"
    with opened(viewers["staff"], address, found=found.append) as tab:
        preview, save = tab.locator("#preview"), tab.locator("button[name=save]")
        guaranteed = tab.locator("input[name=cards-nvidia-h800-guaranteed]")
        guaranteed.fill("9")
        expect(preview).to_contain_text("is guaranteed 9 × nvidia-h800 instead of 8")
        expect(save).to_be_enabled()

        guaranteed.fill("999")
        expect(preview).to_contain_text("more than its cap of 16")
        expect(save).to_be_disabled()

        guaranteed.fill("")
        tab.locator("input[name=name]").fill("two words")
        expect(preview).to_contain_text("must be 1 to 60 Latin letters")
        expect(tab.locator("input[name=name]")).to_have_attribute("aria-invalid", "true")
    assert not found, "\n".join(found)


def test_branches_fold_and_stay_folded(viewers: Viewers, sample: SampleProduct) -> None:
    with opened(viewers["staff"], "/admin/quotas/queue/", found=lambda _said: None) as tab:
        below = tab.locator(f"#queue-{sample.names['queue']}")
        fold = tab.get_by_role("button", name="Child queues of research")
        expect(below).to_be_visible()
        fold.focus()
        tab.keyboard.press("Enter")
        expect(below).to_be_hidden()
        tab.reload()
        expect(below).to_be_hidden()
        fold.click()
        expect(below).to_be_visible()

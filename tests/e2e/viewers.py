"""Somebody at a browser for each kind of page: a stranger, a person, the staff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext

from tests.e2e.browsers import ACCOUNTS, logged_in
from tests.e2e.sample_product import SampleProduct

#: By ``Page.viewer``.
Viewers = Mapping[str, BrowserContext]


@contextmanager
def contexts(
    browser: Browser, product: SampleProduct, *, account: str = "engineer", **options: Any
) -> Iterator[Viewers]:
    """``account`` is who looks at ordinary pages; ``options`` are those of a browser's context."""
    opened: dict[str, BrowserContext] = {}
    for viewer in ("stranger", "person", "staff"):
        opened[viewer] = browser.new_context(
            base_url=product.url, reduced_motion="reduce", **{"locale": "en-GB", **options}
        )
    logged_in(opened["person"], name=ACCOUNTS[account])
    logged_in(opened["staff"], name=ACCOUNTS["admin"])
    yield opened
    for context in opened.values():
        context.close()

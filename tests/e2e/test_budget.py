"""Pages stay light: bytes over the wire, time to the first content, nothing from elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, CDPSession

from tests.e2e.pages import PAGES, Page
from tests.e2e.sample_product import SampleProduct
from tests.e2e.viewers import Viewers, contexts

pytestmark = pytest.mark.browser

#: Bytes over the wire, headers included, without the library of charts.
MOST_BYTES = 250_000
#: Milliseconds until something is to be read, with a cold cache. The quickest of some loads says what the page
#: needs; the others also say what ran beside it, which is another browser with a product of its own.
FIRST_CONTENT = 1_000.0
LOADS, MOST_LOADS = 3, 9
#: The library of charts, which comes after the page and only where there are charts.
CHARTS = "plotly"
PAINTED = """() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null"""


@dataclass(slots=True, kw_only=True)
class Load:
    """What one load of a page brought."""

    sizes: dict[str, float] = field(default_factory=dict)
    first_content: float = 0.0

    @property
    def size(self) -> float:
        return sum(size for url, size in self.sizes.items() if CHARTS not in url)

    @property
    def chart_library(self) -> float:
        return sum(size for url, size in self.sizes.items() if CHARTS in url)


@pytest.fixture(scope="module")
def viewers(browser: Browser, sample: SampleProduct) -> Iterator[Viewers]:
    with contexts(browser, sample, viewport={"width": 1440, "height": 900}) as made:
        yield made


@pytest.fixture(scope="module")
def figures() -> Iterator[dict[str, tuple[float, float]]]:
    """Bytes and milliseconds by page; written where ``NINEFOLD_FIGURES`` says, for docs/benchmarks.md."""
    found: dict[str, tuple[float, float]] = {}
    yield found
    if path := os.environ.get("NINEFOLD_FIGURES"):
        Path(path).write_text(json.dumps(found, indent=2))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_a_page_keeps_its_budget(
    viewers: Viewers,
    sample: SampleProduct,
    figures: dict[str, tuple[float, float]],
    page: Page,
) -> None:
    address = page.address(sample.names)
    loads = [_load(viewers[page.viewer], address) for _ in range(LOADS)]
    while (first := min(load.first_content for load in loads)) > FIRST_CONTENT:
        if len(loads) == MOST_LOADS:
            break
        loads.append(_load(viewers[page.viewer], address))
    figures[page.title] = (loads[0].size, first)
    origins = {f"{urlsplit(url).scheme}://{urlsplit(url).netloc}" for url in loads[0].sizes}
    assert origins == {sample.url}
    heaviest = sorted(loads[0].sizes.items(), key=lambda one: -one[1])[:5]
    assert loads[0].size <= MOST_BYTES, heaviest
    assert page.charts or not loads[0].chart_library
    assert first <= FIRST_CONTENT


def _load(context: BrowserContext, address: str) -> Load:
    """With an empty cache; what a page asks for by itself later counts as well, for two seconds."""
    load = Load()
    tab = context.new_page()
    session = context.new_cdp_session(tab)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    _listen(session, load)
    tab.goto(address, wait_until="load")
    painted = tab.wait_for_function(PAINTED, timeout=10_000).json_value()
    load.first_content = float(painted)
    tab.close()
    return load


def _listen(session: CDPSession, load: Load) -> None:
    urls: dict[str, str] = {}

    def asked(event: dict[str, object]) -> None:
        response = event["response"]
        assert isinstance(response, dict)
        if not str(response["url"]).startswith("data:"):
            urls[str(event["requestId"])] = str(response["url"])

    def came(event: dict[str, object]) -> None:
        url = urls.get(str(event["requestId"]))
        if url is not None:
            load.sizes[url] = load.sizes.get(url, 0.0) + float(str(event["encodedDataLength"]))

    session.on("Network.responseReceived", asked)
    session.on("Network.loadingFinished", came)

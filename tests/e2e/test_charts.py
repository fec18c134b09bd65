"""What a person does with charts in a real browser: range, axis, smoothing, cursor, marks and downloads."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Download,
    Locator,
    Page,
    ViewportSize,
    expect,
)

from tests.e2e.browsers import logged_in, opened
from tests.e2e.sample_product import SampleProduct

pytestmark = pytest.mark.browser

#: Milliseconds; the library is loaded with the first chart.
DRAWN_WITHIN = 60_000
LAYOUT = "element => element.querySelector('.nf-plot')._fullLayout"
RANGES = f"""element => {{
  const {{ xaxis, yaxis }} = ({LAYOUT})(element);
  return [...xaxis.range, ...yaxis.range];
}}"""
LINES = """element => element.querySelector('.nf-plot').data.map(
  ({ name, x, y, opacity }) => ({ name, x, y, opacity })
)"""
MARKS = f"""element => {{
  const {{ shapes, annotations }} = ({LAYOUT})(element);
  return shapes.map(({{ x0, line }}, index) => {{
    const {{ text, hovertext }} = annotations[index];
    return {{ x: x0, dash: line.dash, text, detail: hovertext ?? "" }};
  }});
}}"""


@pytest.fixture(scope="module")
def context(browser: Browser, sample: SampleProduct) -> Iterator[BrowserContext]:
    size: ViewportSize = {"width": 1440, "height": 900}
    signed_in = browser.new_context(base_url=sample.url, locale="en-US", viewport=size)
    logged_in(signed_in, name="admin")
    yield signed_in
    signed_in.close()


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    found: list[str] = []
    yield found
    assert found == []


@pytest.fixture
def design(context: BrowserContext, complaints: list[str]) -> Iterator[Page]:
    with opened(context, "/design", found=complaints.append) as page:
        yield page


def chart(page: Page, name: str) -> Locator:
    """A chart of the page, once it is drawn."""
    element = page.locator(f"[data-chart*='/{name}']")
    expect(element.locator(".nf-plot .main-svg").first).to_be_visible(timeout=DRAWN_WITHIN)
    return element


def point_at(element: Locator, x: float, y: float) -> None:
    """Move the mouse there, in parts of the width and height of the plot."""
    plot = element.locator(".nsewdrag")
    plot.scroll_into_view_if_needed()
    area = plot.bounding_box()
    assert area is not None
    element.page.mouse.move(area["x"] + x * area["width"], area["y"] + y * area["height"], steps=4)


def ranges(element: Locator) -> list[Any]:
    """Begin and end of the x axis, then of the y axis."""
    found: list[Any] = element.evaluate(RANGES)
    return found


def lines(element: Locator) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = element.evaluate(LINES)
    return found


def shows(element: Locator, *, low: float, high: float) -> None:
    """Wait for that range of the x axis, with the accuracy of a pixel."""
    expect(element.locator(".nf-plot")).to_be_visible()
    element.page.wait_for_function(
        f"""([element, low, high]) => {{
          const [begin, end] = ({RANGES})(element);
          return Math.abs(begin - low) < 1 && Math.abs(end - high) < 1;
        }}""",
        arg=[element.element_handle(), low, high],
    )


def drag(element: Locator, *, begin: tuple[float, float], end: tuple[float, float]) -> None:
    """From one place of the plot to another."""
    mouse = element.page.mouse
    for action, place in ((mouse.down, begin), (mouse.up, end)):
        point_at(element, *place)
        action()


def saved(element: Locator, button: str, path: Path) -> Path:
    with element.page.expect_download() as waiting:
        element.get_by_role("button", name=button).click()
    download: Download = waiting.value
    assert download.suggested_filename == f"Loss{path.suffix}"
    download.save_as(path)
    return path


def test_dragging_zooms_all_charts_of_the_grid_and_a_double_click_resets_them(
    design: Page,
) -> None:
    loss, neighbour, other = (chart(design, name) for name in ("lines", "marks", "bars"))
    low, high, bottom, top = ranges(loss)
    bars = ranges(other)
    span = high - low
    drag(loss, begin=(0.25, 0.5), end=(0.75, 0.5))
    for element in (loss, neighbour):
        shows(element, low=low + span / 4, high=high - span / 4)
    assert ranges(loss)[2:] == pytest.approx([bottom, top])
    assert ranges(other) == bars
    design.keyboard.down("Shift")
    drag(loss, begin=(0.5, 0.5), end=(0.25, 0.5))
    design.keyboard.up("Shift")
    for element in (loss, neighbour):
        shows(element, low=low + span * 3 / 8, high=high - span / 8)
    loss.locator(".nsewdrag").dblclick()
    shows(loss, low=low, high=high)
    expect(neighbour.locator(".xtick text").last).to_have_text("100")


def test_the_keyboard_zooms_pans_and_resets_both_axes(design: Page) -> None:
    loss, neighbour = chart(design, "lines"), chart(design, "marks")
    low, high, bottom, top = ranges(loss)
    loss.get_by_text("Chart options").press("Enter")
    span = high - low
    for button, begin, end in (
        ("Zoom in", 1 / 4, 3 / 4),
        ("Move right", 1 / 2, 1),
        ("Move left", 1 / 4, 3 / 4),
        ("Zoom out", 0, 1),
    ):
        loss.get_by_role("button", name=button).press("Enter")
        for element in (loss, neighbour):
            shows(element, low=low + span * begin, high=low + span * end)
    drag(loss, begin=(0.3, 0.2), end=(0.6, 0.8))
    design.wait_for_function(
        f"([element, top]) => ({RANGES})(element)[3] < top", arg=[loss.element_handle(), top]
    )
    loss.get_by_role("button", name="Reset range").press("Space")
    shows(loss, low=low, high=high)
    assert ranges(loss)[2:] == pytest.approx([bottom, top])


def test_a_logarithmic_axis_and_smoothing_keep_the_range_and_can_be_undone(design: Page) -> None:
    loss = chart(design, "lines")
    low, high = ranges(loss)[:2]
    measured = lines(loss)
    drag(loss, begin=(0.25, 0.2), end=(0.75, 0.8))
    loss.get_by_text("Chart options").click()
    logarithmic, smoothing = loss.get_by_label("Logarithmic axis"), loss.get_by_label("Smoothing")
    logarithmic.check()
    design.wait_for_function(
        f"element => ({LAYOUT})(element).yaxis.type === 'log'", arg=loss.element_handle()
    )
    shows(loss, low=low + (high - low) / 4, high=high - (high - low) / 4)
    # Exponents of ten: all values are between 0.01 and 10.
    assert -2 < ranges(loss)[2] < ranges(loss)[3] < 1
    logarithmic.uncheck()
    smoothing.fill("0.9")
    design.wait_for_function(
        f"element => ({LINES})(element).length === 5", arg=loss.element_handle()
    )
    raw, smooth = lines(loss)[:2]
    assert (raw["name"], raw["y"], raw["opacity"]) == ("training", measured[0]["y"], 0.3)
    assert smooth["y"][0] == pytest.approx(raw["y"][0])
    average = (0.9 * 0.1 * raw["y"][0] + 0.1 * raw["y"][1]) / (0.9 * 0.1 + 0.1)
    assert smooth["y"][1] == pytest.approx(average)
    smoothing.fill("0")
    design.wait_for_function(
        f"element => ({LINES})(element).length === 3", arg=loss.element_handle()
    )
    assert lines(loss) == measured


def test_the_downloads_have_the_plotted_values_and_the_picture(
    design: Page, tmp_path: Path
) -> None:
    loss = chart(design, "lines")
    loss.get_by_text("Values as a table").click()
    text = saved(loss, "Download as CSV", tmp_path / "loss.csv").read_text()
    rows = list(csv.reader(text.splitlines()))
    plotted = lines(loss)
    assert rows[0] == ["step", *(f"{line['name']} (nats)" for line in plotted)]
    values = [[float(cell) for cell in row] for row in rows[1:]]
    columns = [list(column) for column in zip(*values, strict=True)]
    assert columns == [plotted[0]["x"], *(line["y"] for line in plotted)]

    loss.get_by_text("Chart options").click()
    path = saved(loss, "Download as PNG", tmp_path / "loss.png")
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    size = loss.evaluate(
        f"element => {{ const at = ({LAYOUT})(element); return [at.width, at.height]; }}"
    )
    with Image.open(path) as picture:
        assert picture.size == tuple(2 * side for side in size)
        assert len(picture.convert("RGB").getcolors(1 << 20) or ()) > 50


def test_charts_of_a_grid_share_the_cursor(
    context: BrowserContext, complaints: list[str], sample: SampleProduct
) -> None:
    card = f"/fleet/cards/{sample.names['card']}?range=6h"
    with opened(context, card, found=complaints.append) as page:
        load, power = chart(page, "load"), chart(page, "power")
        point_at(load, 0.3, 0.5)
        time = load.locator(".hoverlayer text").first
        expect(time).to_be_visible()
        expect(power.locator(".hoverlayer text").first).to_have_text(time.text_content() or "")
        page.mouse.move(0, 0)
        expect(power.locator(".hoverlayer text")).to_have_count(0)


def test_releases_faults_attempts_and_checkpoints_are_marked(
    context: BrowserContext, complaints: list[str], sample: SampleProduct
) -> None:
    def marks(address: str, name: str, count: int) -> list[dict[str, Any]]:
        with opened(context, address, found=complaints.append) as page:
            element = chart(page, name)
            expect(element.locator(".shapelayer path")).to_have_count(count)
            found: list[dict[str, Any]] = element.evaluate(MARKS)
            element.get_by_text("Values as a table").click()
            for detail in filter(None, (mark["detail"] for mark in found)):
                expect(element.locator(".nf-chart-marks")).to_contain_text(detail[:20])
        return found

    (release,) = marks("/design", "marks", 1)
    assert (release["x"], release["dash"], release["text"]) == (40, "solid", "v2")
    by_dash: dict[str, list[dict[str, Any]]] = {}
    for mark in marks(f"/jobs/{sample.names['job.failed']}", "loss", 7):
        by_dash.setdefault(mark["dash"], []).append(mark)
    assert [mark["text"] for mark in by_dash["dot"]] == ["attempt 2"]
    assert [mark["x"] for mark in by_dash["dashdot"]] == [50, 100, 150, 200, 250]
    assert [mark["text"] for mark in by_dash["dashdot"]] == ["", "", "", "", "checkpoint"]
    (fault,) = by_dash["dash"]
    assert (fault["x"], fault["text"]) == (60, "80E01801")
    assert "UTC · sample-npus-" in fault["detail"]
    for card in marks(f"/fleet/cards/{sample.names['card']}?range=7d", "power", 2):
        assert (card["dash"], card["text"]) == ("dash", "31")
        assert "31: Xid 31: GPU memory page fault" in card["detail"]

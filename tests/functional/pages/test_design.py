"""The living page of the design shows every part, to staff only."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from controlplane.web import design_system
from controlplane.web.state_badges import STATE_BADGES
from tests import factories
from tests.functional.pages.test_every_page import check
from tests.functional.sample_rows import EmptyCompany, FilledCompany


@pytest.fixture
def staff(empty: EmptyCompany) -> Client:
    client = Client()
    client.force_login(factories.user("root", admin=True))
    return client


def test_every_part_is_shown_there(staff: Client, filled: FilledCompany) -> None:
    response = staff.get("/design")
    assert response.status_code == 200
    check(response.text)
    parts = Path(settings.BASE_DIR, "templates", "partials").glob("*.html")
    shown = {template.name for template in response.templates}
    missing = {f"partials/{part.name}" for part in parts} - shown
    assert missing == set()
    assert 'aria-describedby="why-retry"' in response.text


def test_every_state_is_shown_there(staff: Client) -> None:
    text = staff.get("/design").text
    assert [state for state in STATE_BADGES if f'data-state="{state}"' not in text] == []


@pytest.mark.parametrize("address", ["/design", "/design/chart/lines"])
def test_for_others_there_is_nothing(browser: Client, client: Client, address: str) -> None:
    assert browser.get(address).status_code == 404
    client.logout()
    assert client.get(address).status_code == 404


@pytest.mark.parametrize("kind", sorted(set(design_system.CHARTS) - {"failing"}))
def test_a_chart_names_its_axes_and_has_as_many_values_as_places(staff: Client, kind: str) -> None:
    drawing = staff.get(f"/design/chart/{kind}").json()
    assert drawing["x"]["label"]
    assert drawing["y"]["label"]
    for series in drawing["series"]:
        assert len(series["x"]) == len(series["y"])


def test_a_live_chart_ends(staff: Client) -> None:
    address, steps = "/design/chart/live", []
    for _ in range(30):
        drawing = staff.get(address).json()
        steps += drawing["series"][0]["x"]
        if drawing["ended"]:
            break
        address = f"/design/chart/live{drawing['more']}"
    assert steps == list(range(40))


@pytest.mark.parametrize("after", ["", "x", "-4", "²"])
def test_a_live_chart_takes_no_nonsense(staff: Client, after: str) -> None:
    assert staff.get("/design/chart/live", {"after": after}).json()["series"][0]["x"] == [0, 1]


def test_a_chart_that_is_not_there_is_not_found(staff: Client) -> None:
    assert staff.get("/design/chart/unicorn").status_code == 404


def test_news_come_as_a_toast_for_htmx_and_as_a_message_for_others(staff: Client) -> None:
    swapped = staff.post("/design", {"level": "error"}, headers={"hx-request": "true"})
    assert swapped.status_code == 204
    assert '"toast": {"level": "error"' in swapped["HX-Trigger"]
    page = staff.post("/design", {"level": "error"}, follow=True)
    assert 'data-toast="error" role="alert"' in page.text

"""The figures of one card: the newest with their age, and over time with their gaps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.fleet.models import Card
from apps.telemetry.models import CardHour
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def card() -> Card:
    factories.cluster(cards=1)
    return Card.objects.get()


def chart(browser: Client, card: Card, name: str, reach: str = "1h") -> dict[str, Any]:
    answer = browser.get(f"/fleet/cards/{card.uid}/{name}.json?range={reach}")
    assert answer.status_code == 200
    return answer.json()  # type: ignore[no-any-return]


def test_a_card_that_was_never_measured_says_how_figures_come(viewer: Client, card: Card) -> None:
    assert "No metrics" in viewer.get(f"/fleet/cards/{card.uid}").text


def test_figures_have_units_and_an_age(viewer: Client, card: Card) -> None:
    factories.card_metrics([card], at=timezone.now() - timedelta(minutes=9), clock=None)
    text = viewer.get(f"/fleet/cards/{card.uid}").text
    assert "61.0 <small>GiB</small>" in text
    assert "of 80 GiB" in text
    assert "512 <small>W</small>" in text
    assert "Clock" not in text
    assert "stale: measured" in text
    assert "9 min ago" in text


def test_a_gap_stays_a_gap_and_a_slow_exporter_is_none(viewer: Client, card: Card) -> None:
    now = timezone.now()
    minute = timedelta(minutes=1)
    factories.history(card, since=now - 50 * minute, until=now - 40 * minute)
    factories.history(card, since=now - 20 * minute, until=now - minute)
    (line,) = chart(viewer, card, "load")["series"]
    assert line["y"].count(None) == 1
    assert [value for value in line["y"] if value is not None] == [83.0] * 31
    assert line["x"] == sorted(line["x"])


def test_long_ranges_come_from_the_hourly_sums(viewer: Client, card: Card) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    CardHour.objects.bulk_create(
        CardHour(
            card=card,
            hour=hour - timedelta(hours=number),
            samples=360,
            utilization_mean=float(number),
            power_mean=400.0,
            ecc_uncorrected_max=2.0,
        )
        for number in (1, 2, 3)
    )
    assert chart(viewer, card, "load", "7d")["series"][0]["y"] == [3.0, 2.0, 1.0]
    assert chart(viewer, card, "errors", "30d")["series"][0]["y"] == [2.0] * 3
    assert chart(viewer, card, "heat", "7d")["series"] == []


def test_a_fault_is_a_mark_where_it_began(viewer: Client, card: Card) -> None:
    at = timezone.now() - timedelta(minutes=30)
    factories.fault(card, code="79", at=at)
    factories.fault(card, code="48", at=at - timedelta(hours=3))
    assert [one["label"] for one in chart(viewer, card, "power")["marks"]] == ["79"]
    assert len(chart(viewer, card, "power", "6h")["marks"]) == 2


def test_what_is_no_chart_tab_or_range_is_not_there(viewer: Client, card: Card) -> None:
    for address in ("/taste.json", "/load.json?range=9y", "?tab=taste", "?range=9y"):
        assert viewer.get(f"/fleet/cards/{card.uid}{address}").status_code == 404, address
    assert viewer.get(f"/fleet/cards/{'0' * 32}").status_code == 404

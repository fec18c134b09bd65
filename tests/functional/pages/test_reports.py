"""The usage report: content and visibility."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Team, User
from apps.quotas.models import CardRate, UsageRecord
from apps.quotas.services.usage_ledger import usage_roll_up
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.quotas.card_hours import month_of
from tests import factories
from tests.factories import usage

HOUR = timedelta(hours=1)


@pytest.fixture
def teams(db: None) -> tuple[Team, Team]:
    factories.cluster(cards=8)
    return factories.team("maps"), factories.team("zebra")


@pytest.fixture
def used(teams: tuple[Team, Team]) -> datetime:
    """Yesterday at noon maps used 3 cards for 2 hours, zebra 1 for 6; zebra holds one since an hour ago."""
    maps, zebra = teams
    queue = factories.queue()
    noon = timezone.now().astimezone(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    noon -= timedelta(days=1)
    ada = factories.user("ada", team=maps)
    one = usage.holding(since=noon, queue=queue, team=maps, user=ada, cards=3)
    other = usage.holding(since=noon, queue=queue, team=zebra, name="stripes")
    usage.release(one, at=noon + 2 * HOUR)
    usage.release(other, at=noon + 6 * HOUR)
    usage.holding(since=timezone.now() - HOUR, queue=queue, team=zebra)
    return noon


def entered(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


def rows(client: Client, **query: str) -> list[dict[str, str]]:
    """The report as CSV, for the days around yesterday."""
    today = timezone.now().date()
    days = {"range": "days", "first": str(today - timedelta(days=2)), "last": str(today)}
    answer = client.get("/reports/usage", {**days, **query, "format": "csv"})
    assert answer["Content-Type"].startswith("text/csv")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    return list(csv.DictReader(io.StringIO(text)))


def hours(found: list[dict[str, str]], column: str) -> dict[str, float]:
    return {row[column]: round(float(row["Card-hours"]), 1) for row in found}


def test_company_administrators_see_all_usage_including_running_claims(
    client: Client, used: datetime
) -> None:
    entered(client, factories.user("root", admin=True))
    assert hours(rows(client), "Team") == {"maps": 6.0, "zebra": 7.0}
    usage_roll_up()
    assert hours(rows(client), "Team") == {"maps": 6.0, "zebra": 7.0}
    assert hours(rows(client, by="user"), "User") == {"ada": 6.0, "unknown user": 7.0}
    assert hours(rows(client, by="chip"), "Chip") == {"cpu": 13.0}
    assert hours(rows(client, by="queue"), "Queue") == {"default": 13.0}
    assert hours(rows(client, by="work"), "Workload type") == {"Jobs": 13.0}


def test_days_and_months_add_up_to_the_whole(client: Client, used: datetime) -> None:
    entered(client, factories.user("root", admin=True))
    by_day = rows(client, per="day")
    assert {row["Time"] for row in by_day} >= {used.date().isoformat()}
    for per in ("day", "month"):
        total = sum(int(row["Card-microseconds"]) for row in rows(client, per=per))
        assert total == pytest.approx(13 * 3600e6, rel=1e-3)
    assert sum(float(row["Share"]) for row in by_day) == pytest.approx(1, abs=1e-4)


def test_members_see_only_their_teams(client: Client, used: datetime) -> None:
    entered(client, User.objects.get(username="ada"))
    assert hours(rows(client), "Team") == {"maps": 6.0}
    page = client.get("/reports/usage").content.decode()
    assert "zebra" not in page
    days = client.get("/reports/usage/chart").json()
    assert sum(sum(one["y"]) for one in days["series"]) <= 6.0


def test_a_queue_admin_sees_usage_of_queues_below_theirs(
    client: Client, teams: tuple[Team, Team]
) -> None:
    maps, zebra = teams
    above = factories.queue(name="maps", team=maps)
    below = factories.queue(name="maps-lent", parent=above)
    elsewhere = factories.queue(name="zebra", team=zebra)
    since = timezone.now() - HOUR
    usage.holding(since=since, queue=below, team=zebra)
    usage.holding(since=since, queue=elsewhere, team=zebra, cards=2)
    entered(client, factories.user("mary", team=maps, role=TeamRole.QUEUE_ADMIN))
    assert hours(rows(client, by="queue"), "Queue") == {"maps-lent": 1.0}
    entered(client, factories.user("vera", team=maps, role=TeamRole.ENGINEER))
    assert rows(client, by="queue") == []


def test_a_missing_rate_is_shown_and_not_counted_as_zero(client: Client, used: datetime) -> None:
    entered(client, factories.user("root", admin=True))
    this_month = used.date() >= month_of(timezone.now().date()).first
    query = {"range": "month" if this_month else "last"}
    page = client.get("/reports/usage", query).content.decode()
    assert "no card-hour rate for cpu" in page
    assert {row["Cost"] for row in rows(client)} == {""}
    CardRate.objects.create(chip="cpu", per_hour=Decimal("2.5"))
    assert [row["Cost"] for row in rows(client) if row["Team"] == "maps"] == ["15.00"]
    page = client.get("/reports/usage", query).content.decode()
    assert "no card-hour rate" not in page
    assert "CNY 15.00" in page


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ({"range": "days", "first": "2026-05-02", "last": "2026-05-01"}, "before the first day"),
        ({"range": "days", "first": "2024-01-01", "last": "2026-05-01"}, "at most 366 days"),
        ({"range": "days", "first": "yesterday"}, "Enter a valid date"),
        ({"by": "colour"}, "colour"),
    ],
)
def test_an_invalid_period_is_reported_and_this_month_shown(
    client: Client, db: None, query: dict[str, Any], hint: str
) -> None:
    entered(client, factories.user("root", admin=True))
    answer = client.get("/reports/usage", query)
    assert answer.status_code == 200
    assert hint in answer.content.decode()
    assert answer.context["report"].period == month_of(timezone.now().date())


def test_a_report_without_usage_has_an_empty_state(client: Client, db: None) -> None:
    entered(client, factories.user("root", admin=True))
    assert "No usage in this time range" in client.get("/reports/usage").content.decode()
    assert client.get("/reports/usage/chart").json()["series"] == []


def test_the_number_of_queries_does_not_grow_with_records(
    client: Client, used: datetime, django_assert_num_queries: Any
) -> None:
    entered(client, factories.user("root", admin=True))
    model = UsageRecord.objects.first()
    assert model is not None
    step = timedelta(microseconds=1)
    UsageRecord.objects.bulk_create(
        UsageRecord(
            claim=model.claim,
            queue=model.queue,
            team=model.team,
            chip=f"chip-{number % 9}",
            cards=1,
            since=used + number * step,
            until=used + (number + 1) * step,
            card_microseconds=1,
        )
        for number in range(1000)
    )
    usage_roll_up()
    client.get("/reports/usage")
    with django_assert_num_queries(8):
        client.get(
            "/reports/usage",
            {
                "range": "days",
                "first": str(used.date()),
                "last": str(used.date()),
            },
        )
    series = client.get(
        "/reports/usage/chart",
        {"range": "days", "first": str(used.date()), "last": str(used.date())},
    ).json()["series"]
    assert len(series) == 6


def test_a_job_page_shows_its_usage_so_far(client: Client, teams: tuple[Team, Team]) -> None:
    team = teams[0]
    ada = factories.user("ada", team=team)
    CardRate.objects.create(chip="cpu", per_hour=Decimal("100"))
    job = factories.job(actor=ada, team=team, queue=factories.queue(), kind=JobKind.SCRIPT)
    address = f"/jobs/{job.uid}"
    entered(client, ada)
    assert "data-used" not in client.get(address).content.decode()
    factories.schedule(at=timezone.now() - 3 * HOUR)
    assert "3.0 card-hours, CNY 300." in client.get(address).content.decode()

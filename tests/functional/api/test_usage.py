"""The ledger by REST: records, days, months and rates."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from rest_framework.test import APIClient

from apps.accounts.models import AuditEntry
from apps.quotas.models import CardRate, Claim
from apps.quotas.services.usage_ledger import usage_roll_up
from tests import factories
from tests.factories import usage
from tests.functional.api.callers import API, wrong_fields
from tests.integration.company import Company

NOON = datetime(2026, 5, 6, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def administrator(company: Company) -> APIClient:
    client = APIClient()
    client.force_authenticate(factories.user("root", admin=True))
    return client


@pytest.fixture
def ended(company: Company) -> Claim:
    """A job of the company's engineer held both cards from noon on for 36 hours."""
    claim = usage.holding(
        since=NOON,
        queue=company.queue,
        team=company.team,
        user=company.engineer,
        cards=2,
        name="=teach()",
    )
    usage.release(claim, at=NOON + 36 * HOUR)
    usage_roll_up()
    return claim


def test_records_are_listed_newest_first_and_filtered(
    engineer: APIClient, stranger: APIClient, company: Company, ended: Claim
) -> None:
    found = engineer.get(f"{API}/usage/records").json()["results"]
    assert [record["since"] for record in found] == [
        "2026-05-07T00:00:00Z",
        "2026-05-06T12:00:00Z",
    ]
    first = found[-1]
    assert (first["claim"], first["user"]) == (ended.uid, company.engineer.username)
    assert (first["cards"], first["card_hours"]) == (2, "24.000")
    assert first["card_microseconds"] == 24 * 3600 * 10**6
    for query, count in {
        f"work={ended.work_uid}": 2,
        f"claim={ended.uid}&since=2026-05-07T00:00:00Z": 1,
        "until=2026-05-07T00:00:00Z": 1,
        "chip=ascend-910b3": 0,
        "work_kind=deployment": 0,
        f"team={company.team.uid}&queue={company.queue.name}": 2,
    }.items():
        assert len(engineer.get(f"{API}/usage/records?{query}").json()["results"]) == count, query
    assert stranger.get(f"{API}/usage/records").json()["results"] == []


@pytest.mark.parametrize("how", [{"query": "?format=csv"}, {"accept": "text/csv"}])
def test_records_are_exported_as_csv_safe_for_spreadsheets(
    engineer: APIClient, ended: Claim, how: dict[str, str]
) -> None:
    answer = engineer.get(
        f"{API}/usage/records{how.get('query', '')}", headers={"Accept": how.get("accept", "*/*")}
    )
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [line["work_name"] for line in lines] == ["'=teach()", "'=teach()"]
    assert sum(int(line["card_microseconds"]) for line in lines) == 72 * 3600 * 10**6


def test_days_and_months_are_sums_of_the_records(engineer: APIClient, ended: Claim) -> None:
    days = engineer.get(f"{API}/usage/days?first=2026-05-01&last=2026-05-31").json()["results"]
    assert {day["day"]: day["card_hours"] for day in days} == {
        "2026-05-06": "24.000",
        "2026-05-07": "48.000",
    }
    months = engineer.get(f"{API}/usage/months?first=2026-04-01&last=2026-05-31&by=user").json()
    assert (months["card_hours"], months["currency"]) == ("72.000", "CNY")
    [row] = months["rows"]
    assert (row["month"], row["card_hours"], row["share"]) == ("2026-05", "72.000", 1.0)
    assert row["cost"] == {"amount": "0.00", "unrated": ["cpu"]}


def test_an_invalid_period_is_refused_with_the_limits(engineer: APIClient) -> None:
    for query in ("first=2026-05-02&last=2026-05-01", "first=2020-01-01&last=2026-05-01"):
        said = wrong_fields(engineer.get(f"{API}/usage/months?{query}"))["last"]
        assert "must be 0 to 365 days after" in said


def test_an_administrator_sets_a_card_rate_with_an_audit_event(
    engineer: APIClient, administrator: APIClient, ended: Claim
) -> None:
    assert engineer.put(f"{API}/usage/rates/cpu", {"per_hour": "2.5"}).status_code == 403
    answer = administrator.put(f"{API}/usage/rates/cpu", {"per_hour": "2.5"})
    assert answer.json() == {"chip": "cpu", "per_hour": "2.5000", "currency": "CNY"}
    assert engineer.get(f"{API}/usage/rates").json() == [answer.json()]
    months = engineer.get(f"{API}/usage/months?first=2026-05-01").json()
    assert months["cost"] == {"amount": "180.00", "unrated": []}
    entry = AuditEntry.objects.get(action="rate.change")
    assert (entry.object_name, entry.detail["before"], entry.detail["after"]) == (
        "cpu",
        None,
        "2.5000",
    )
    assert "per_hour" in wrong_fields(
        administrator.put(f"{API}/usage/rates/cpu", {"per_hour": "-1"})
    )
    assert administrator.put(f"{API}/usage/rates/abacus", {"per_hour": "1"}).status_code == 404
    assert administrator.delete(f"{API}/usage/rates/cpu").status_code == 204
    assert not CardRate.objects.exists()

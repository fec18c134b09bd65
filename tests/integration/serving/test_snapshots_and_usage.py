"""What gateways are told, and what they tell."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError

from apps.accounts.models import AuditEntry
from apps.serving import selectors
from apps.serving.models import ApiKey, GatewaySnapshot, UsageBatch, UsageRecord
from apps.serving.services import keys, snapshots, usage
from tests.integration.company import Company
from tests.integration.serving.served import create
from tests.integration.threads import at_once, raised


def publish(company: Company) -> GatewaySnapshot:
    return snapshots.snapshot_publish(at=company.at)


def told(snapshot: GatewaySnapshot) -> dict[str, Any]:
    return dict(json.loads(snapshots.snapshot_body(snapshot)))


def key_of(company: Company, **changes: Any) -> ApiKey:
    key, _ = keys.key_create(
        actor=company.engineer, team=company.team, name="robot", at=company.at, **changes
    )
    return key


def digests(company: Company) -> list[str]:
    return [key["digest"] for key in told(publish(company))["keys"]]


def test_a_new_version_is_issued_only_when_the_content_changes(company: Company) -> None:
    first = publish(company)
    company.later(timedelta(minutes=10))
    assert publish(company).version == first.version

    key_of(company)
    second = publish(company)
    assert second.version > first.version
    assert publish(company).version == second.version


def test_an_unchanged_snapshot_is_issued_anew_before_it_grows_stale(company: Company) -> None:
    first = publish(company)
    company.later(snapshots.REISSUE_AFTER)

    again = publish(company)

    assert again.version > first.version
    assert again.digest == first.digest
    assert snapshots.REISSUE_AFTER < snapshots.MAX_STALE


def test_publishing_many_at_once_issues_one_version(committed_company: Company) -> None:
    company = committed_company

    outcomes = at_once(*[lambda: publish(company).version for _ in range(4)])

    assert raised(outcomes, Exception) == 0
    assert len(set(map(str, outcomes))) == 1


def test_only_the_newest_snapshots_are_kept(company: Company) -> None:
    for _ in range(snapshots.KEPT + 5):
        company.later(snapshots.REISSUE_AFTER)
        publish(company)

    assert GatewaySnapshot.objects.count() == snapshots.KEPT


def test_credentials_are_not_readable_in_the_database(company: Company) -> None:
    key = key_of(company)

    stored = bytes(publish(company).body)

    assert key.digest.encode() not in stored
    assert told(publish(company))["keys"][0]["digest"] == key.digest


def test_the_snapshot_says_how_old_it_may_grow_and_carries_each_limit(company: Company) -> None:
    key = key_of(
        company,
        routes=["parser"],
        requests_per_minute=60,
        tokens_per_minute=1000,
        concurrency=2,
        expires_at=company.at + timedelta(days=1),
    )
    body = told(publish(company))

    assert body["max_stale_seconds"] == 24 * 3600
    assert body["gateways"] == 1
    assert body["keys"] == [
        {
            "digest": key.digest,
            "uid": key.uid,
            "team": company.team.uid,
            "routes": ["parser"],
            "expires_at": (company.at + timedelta(days=1)).isoformat(),
            "requests_per_minute": 60,
            "tokens_per_minute": 1000,
            "concurrency": 2,
        }
    ]


def test_a_revoked_key_disappears_at_once_and_revoking_again_changes_nothing(
    company: Company,
) -> None:
    key = key_of(company)
    assert digests(company) == [key.digest]

    keys.key_revoke(key=key, actor=company.engineer, at=company.at)
    latest = selectors.latest_snapshot()
    assert latest is not None
    assert told(latest)["keys"] == []
    keys.key_revoke(key=key, actor=company.engineer, at=company.at)

    assert AuditEntry.objects.filter(action="key.revoke").count() == 1


def test_an_expired_key_disappears(company: Company) -> None:
    key = key_of(company, expires_at=company.at + timedelta(hours=1))
    assert digests(company) == [key.digest]

    company.later(timedelta(hours=1))

    assert digests(company) == []


def test_the_text_of_a_key_is_kept_nowhere(company: Company) -> None:
    key, text = keys.key_create(
        actor=company.engineer, team=company.team, name="robot", at=company.at
    )
    row = ApiKey.objects.filter(pk=key.pk).values().get()

    assert text.startswith("nf-")
    assert text not in {str(value) for value in row.values()}
    assert text not in json.dumps(list(AuditEntry.objects.values("detail")))


def test_limits_are_divided_among_the_gateways_that_live(company: Company) -> None:
    for name in ("g1", "g2"):
        snapshots.gateway_seen(name=name, version=1, at=company.at)
    assert told(publish(company))["gateways"] == 2

    company.later(selectors.GATEWAY_SILENCE)
    snapshots.gateway_seen(name="g1", version=2, at=company.at)

    assert told(publish(company))["gateways"] == 1


def test_a_route_without_a_ready_replica_is_told_without_endpoints(company: Company) -> None:
    create(company)

    (route,) = told(publish(company))["routes"]

    assert (route["name"], route["team"]) == ("parser", company.team.uid)
    assert route["context_length"] == 512
    assert [backend["endpoints"] for backend in route["backends"]] == [[]]


def record(company: Company, **changes: Any) -> dict[str, Any]:
    return {
        "at": company.at.isoformat(),
        "key": None,
        "route": "parser",
        "backend": None,
        "operation": "chat",
        "status": 200,
        "outcome": "ok",
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "duration_ms": 12.5,
        "first_token_ms": 3.0,
        **changes,
    }


def test_a_batch_counts_once_however_often_it_is_posted(company: Company) -> None:
    key = key_of(company)
    records = [record(company, key=key.uid), record(company, key=key.uid, status=500)]

    assert usage.usage_record(gateway="g1", sequence=7, records=records)
    assert not usage.usage_record(gateway="g1", sequence=7, records=records)
    assert usage.usage_record(gateway="g2", sequence=7, records=records)

    visible = selectors.usage_visible(company.engineer)
    assert selectors.usage_totals(visible) == {
        "calls": 4,
        "prompt_tokens": 40,
        "completion_tokens": 20,
    }
    assert selectors.usage_totals(selectors.usage_visible(company.stranger))["calls"] == 0


def test_a_batch_posted_by_many_at_once_counts_once(committed_company: Company) -> None:
    company = committed_company
    records = [record(company)]

    def post() -> bool:
        return usage.usage_record(gateway="g1", sequence=1, records=records)

    assert sorted(map(str, at_once(post, post, post))) == ["False", "False", "True"]
    assert UsageRecord.objects.count() == 1


def test_a_batch_that_cannot_be_kept_is_not_taken_for_one_counted_before(
    company: Company,
) -> None:
    with pytest.raises(IntegrityError):
        usage.usage_record(gateway="g1", sequence=1, records=[record(company, prompt_tokens=-1)])


def test_usage_of_an_unknown_key_is_kept_without_a_team(company: Company) -> None:
    usage.usage_record(gateway="g1", sequence=1, records=[record(company, key="0" * 32)])

    kept = UsageRecord.objects.get()
    assert (kept.key, kept.team, kept.batch) == (None, None, UsageBatch.objects.get())

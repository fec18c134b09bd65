"""Snapshots for gateways, and usage from them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError

from apps.accounts.models import AuditEntry
from apps.models.models import ModelVersion
from apps.serving import selectors
from apps.serving.models import (
    ApiKey,
    GatewayCall,
    GatewaySnapshot,
    Replica,
    Revision,
    UsageBatch,
)
from apps.serving.services import gateways
from controlplane.adapters.engines.sglang import SglangEngine
from controlplane.adapters.engines.transformers.engine import TransformersEngine
from controlplane.adapters.engines.vllm import VllmEngine
from controlplane.ports import adapter_registry
from controlplane.ports.engines import Engine
from tests.integration.company import Company
from tests.integration.serving.deployments import create, ready_deployment
from tests.integration.threads import at_once, raised


def publish(company: Company) -> GatewaySnapshot:
    return gateways.gateway_snapshot_publish(at=company.at)


def body_of(snapshot: GatewaySnapshot) -> dict[str, Any]:
    return dict(json.loads(gateways.gateway_snapshot_body(snapshot)))


def key_of(company: Company, **changes: Any) -> ApiKey:
    key, _ = gateways.api_key_create(
        actor=company.engineer, team=company.team, name="robot", at=company.at, **changes
    )
    return key


def digests(company: Company) -> list[str]:
    return [key["digest"] for key in body_of(publish(company))["keys"]]


def test_a_new_version_is_issued_only_when_the_content_changes(company: Company) -> None:
    first = publish(company)
    company.later(timedelta(minutes=10))
    assert publish(company).version == first.version

    key_of(company)
    second = publish(company)
    assert second.version > first.version
    assert publish(company).version == second.version


def test_unchanged_snapshot_is_reissued_before_it_is_stale(company: Company) -> None:
    first = publish(company)
    company.later(gateways.REISSUE_AFTER)

    again = publish(company)

    assert again.version > first.version
    assert again.digest == first.digest
    assert gateways.REISSUE_AFTER < gateways.MAX_SNAPSHOT_AGE


def test_publishing_many_at_once_issues_one_version(committed_company: Company) -> None:
    company = committed_company

    outcomes = at_once(*[lambda: publish(company).version for _ in range(4)])

    assert raised(outcomes, Exception) == 0
    assert len(set(map(str, outcomes))) == 1


def test_only_newest_snapshots_are_stored(company: Company) -> None:
    for _ in range(gateways.STORED_SNAPSHOTS + 5):
        company.later(gateways.REISSUE_AFTER)
        publish(company)

    assert GatewaySnapshot.objects.count() == gateways.STORED_SNAPSHOTS


def test_credentials_are_not_readable_in_the_database(company: Company) -> None:
    key = key_of(company)

    stored = bytes(publish(company).body)

    assert key.digest.encode() not in stored
    assert body_of(publish(company))["keys"][0]["digest"] == key.digest


def test_snapshot_contains_max_age_and_limits(company: Company) -> None:
    key = key_of(
        company,
        routes=["parser"],
        requests_per_minute=60,
        tokens_per_minute=1000,
        concurrency=2,
        expires_at=company.at + timedelta(days=1),
    )
    body = body_of(publish(company))

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


def test_revoked_key_is_removed_from_snapshot_and_revoking_is_idempotent(
    company: Company,
) -> None:
    key = key_of(company)
    assert digests(company) == [key.digest]

    gateways.api_key_revoke(key=key, actor=company.engineer, at=company.at)
    latest = selectors.latest_gateway_snapshot()
    assert latest is not None
    assert body_of(latest)["keys"] == []
    gateways.api_key_revoke(key=key, actor=company.engineer, at=company.at)

    assert AuditEntry.objects.filter(action="key.revoke").count() == 1


def test_expired_key_is_removed_from_snapshot(company: Company) -> None:
    key = key_of(company, expires_at=company.at + timedelta(hours=1))
    assert digests(company) == [key.digest]

    company.later(timedelta(hours=1))

    assert digests(company) == []


def test_text_of_key_is_not_stored(company: Company) -> None:
    key, text = gateways.api_key_create(
        actor=company.engineer, team=company.team, name="robot", at=company.at
    )
    row = ApiKey.objects.filter(pk=key.pk).values().get()

    assert text.startswith("nf-")
    assert text not in {str(value) for value in row.values()}
    assert text not in json.dumps(list(AuditEntry.objects.values("detail")))


def test_snapshot_counts_live_gateways(company: Company) -> None:
    for name in ("g1", "g2"):
        gateways.gateway_mark_seen(name=name, version=1, at=company.at)
    assert body_of(publish(company))["gateways"] == 2

    company.later(selectors.GATEWAY_HEARTBEAT_TIMEOUT)
    gateways.gateway_mark_seen(name="g1", version=2, at=company.at)

    assert body_of(publish(company))["gateways"] == 1


def test_route_without_ready_replica_has_no_endpoints(company: Company) -> None:
    create(company)

    (route,) = body_of(publish(company))["routes"]

    assert (route["name"], route["team"]) == ("parser", company.team.uid)
    assert route["context_length"] == 512
    assert [backend["endpoints"] for backend in route["backends"]] == [[]]


def test_route_offers_the_operations_of_its_engine(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(company)
    engines: dict[str, Engine] = {"transformers": TransformersEngine()}
    monkeypatch.setattr(adapter_registry, "engine_by_name", engines.__getitem__)
    monkeypatch.setattr(adapter_registry, "engine_names", lambda: tuple(engines))
    Revision.objects.update(engine="transformers")
    ModelVersion.objects.update(architecture="Qwen2ForCausalLM")

    (route,) = body_of(publish(company))["routes"]

    assert route["operations"] == ["chat", "completions", "responses"]


def test_snapshot_names_parameters_that_a_ready_replica_ignores(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = ready_deployment(company)
    engines: dict[str, Engine] = {"sglang": SglangEngine(), "vllm": VllmEngine()}
    monkeypatch.setattr(adapter_registry, "engine_by_name", engines.__getitem__)
    monkeypatch.setattr(adapter_registry, "engine_names", lambda: tuple(engines))
    ignored = {"responses": {"text.format": "0.5.18"}}
    cases: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
        ("sglang", "0.5.14", "nvidia-h800", ignored),
        ("sglang", "0.5.17", "nvidia-h800", ignored),
        ("sglang", "0.5.18", "nvidia-h800", {}),
        ("sglang", "", "nvidia-h800", {}),
        # Its image has 0.5.14, whatever the default version.
        ("sglang", "", "ascend-910b3", ignored),
        ("vllm", "", "nvidia-h800", {}),
    )
    for engine, version, chip, expected in cases:
        Revision.objects.filter(deployment=deployment).update(
            engine=engine, spec={"engine_version": version}
        )
        Replica.objects.filter(backend__revision__deployment=deployment).update(chip=chip)
        (route,) = body_of(publish(company))["routes"]
        assert route["ignored_parameters"] == expected, (engine, version, chip)


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

    assert gateways.usage_batch_record(gateway="g1", sequence=7, records=records)
    assert not gateways.usage_batch_record(gateway="g1", sequence=7, records=records)
    assert gateways.usage_batch_record(gateway="g2", sequence=7, records=records)

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
        return gateways.usage_batch_record(gateway="g1", sequence=1, records=records)

    assert sorted(map(str, at_once(post, post, post))) == ["False", "False", "True"]
    assert GatewayCall.objects.count() == 1


def test_batch_that_failed_to_be_stored_is_not_counted_as_duplicate(
    company: Company,
) -> None:
    with pytest.raises(IntegrityError):
        gateways.usage_batch_record(
            gateway="g1", sequence=1, records=[record(company, prompt_tokens=-1)]
        )


def test_usage_of_unknown_key_is_stored_without_team(company: Company) -> None:
    gateways.usage_batch_record(gateway="g1", sequence=1, records=[record(company, key="0" * 32)])

    call = GatewayCall.objects.get()
    assert (call.key, call.team, call.batch) == (None, None, UsageBatch.objects.get())

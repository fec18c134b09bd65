from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from apps.fleet.models import Node
from apps.serving import reconcilers
from apps.serving.models import ApiKey, Deployment, Replica
from apps.serving.services import deployments, gateways
from controlplane.domain.common.resources import MIB
from controlplane.domain.serving.lifecycle import ReplicaState
from tests.cases import for_each_case
from tests.functional.api.callers import API, problem, wrong_fields
from tests.integration.company import Company, ready_model
from tests.s3_servers import store_options


def body(company: Company, **changes: Any) -> dict[str, Any]:
    return {
        "name": "address-parser",
        "model_version": company.model.uid,
        "engine": "plain",
        **changes,
    }


def deploy(client: APIClient, company: Company, **changes: Any) -> dict[str, Any]:
    created = client.post(f"{API}/deployments", body(company, **changes))
    assert created.status_code == 201, created.content
    answer: dict[str, Any] = created.json()
    return answer


def serve(company: Company) -> None:
    """Admit, start and make ready everything that is pending."""
    company.turn_deployments()
    company.schedule()
    company.turn_deployments()
    for replica in Replica.objects.filter(state=ReplicaState.STARTING):
        company.cluster.run(replica.launch_name)
    company.turn_deployments()
    company.turn_deployments()


def test_a_deployment_starts_and_becomes_ready(engineer: APIClient, company: Company) -> None:
    created = deploy(engineer, company)
    assert (created["state"], created["route"], created["replica_count"]) == (
        "starting",
        "address-parser",
        1,
    )
    serve(company)
    shown = engineer.get(f"{API}/deployments/{created['uid']}").json()
    assert (shown["state"], shown["ready_replicas"]) == ("ready", 1)
    replica = shown["revisions"][0]["backends"][0]["replicas"][0]
    assert replica["state"] == "ready"
    assert shown["revisions"][0]["model_version"]["name"] == "tiny v1"
    company.cluster.write_log(f"replica-{replica['uid']}-1", b"listening\n")
    log = engineer.get(f"{API}/replicas/{replica['uid']}/log").json()
    assert (log["text"], log["complete"]) == ("listening\n", False)


def test_a_deployment_is_scaled_revised_stopped_started_and_deleted(
    engineer: APIClient, company: Company
) -> None:
    address = f"{API}/deployments/{deploy(engineer, company)['uid']}"
    serve(company)
    assert engineer.post(f"{address}/scale", {"replicas": 2}).json()["replica_count"] == 2
    better = ready_model(team=company.team, name="better")
    revised = engineer.post(
        f"{address}/revise", {"model_version": better.uid, "engine": "plain"}
    ).json()
    assert [revision["number"] for revision in revised["revisions"]] == [2, 1]
    assert engineer.post(f"{address}/stop").json()["state"] == "stopping"
    problem(engineer.post(f"{address}/stop"), 409, "illegal-transition")
    for _ in range(3):
        company.turn_deployments()
    assert engineer.get(address).json()["state"] == "stopped"
    assert engineer.post(f"{address}/start").json()["state"] == "starting"
    serve(company)
    deleting = engineer.delete(address)
    assert (deleting.status_code, deleting.json()["state"]) == (202, "stopping")
    assert deleting.json()["deletion_requested_at"]
    assert engineer.delete(address).status_code == 202
    problem(engineer.post(f"{address}/start"), 409, "illegal-transition")
    for _ in range(3):
        company.turn_deployments()
    problem(engineer.get(address), 404, "not-found")
    deploy(engineer, company)


def test_a_revision_keeps_what_its_request_omits(engineer: APIClient, company: Company) -> None:
    address = f"{API}/deployments/{deploy(engineer, company)['uid']}"
    first = engineer.get(address).json()["revisions"][0]
    asked = {"model_version": company.model.uid, "spec": {"steps": 3}, "cards": 2}
    second = engineer.post(f"{address}/revise", asked).json()["revisions"][0]
    assert (second["engine"], second["chips"]) == (first["engine"], first["chips"])
    better = ready_model(team=company.team, name="better")
    third = engineer.post(f"{address}/revise", {"model_version": better.uid}).json()["revisions"][0]
    assert third["model_version"]["name"] == "better v1"
    omitted = ("engine", "spec", "chips", "cards")
    assert [third[name] for name in omitted] == [second[name] for name in omitted]


def test_a_deployment_that_stops_during_its_deletion_is_deleted(
    engineer: APIClient, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reconcilers run between the request of the deletion and its response."""
    created = deploy(engineer, company)
    delete = deployments.deployment_delete

    def delete_and_reconcile(**given: Any) -> bool:
        deleted = delete(**given)
        for _ in range(3):
            company.turn_deployments()
        return deleted

    monkeypatch.setattr(deployments, "deployment_delete", delete_and_reconcile)
    assert engineer.delete(f"{API}/deployments/{created['uid']}").status_code == 204
    assert not Deployment.objects.filter(deleted_at=None).exists()


def test_a_stopped_deployment_is_deleted_at_once(engineer: APIClient, company: Company) -> None:
    address = f"{API}/deployments/{deploy(engineer, company)['uid']}"
    engineer.post(f"{address}/stop")
    for _ in range(3):
        company.turn_deployments()
    assert engineer.delete(address).status_code == 204
    problem(engineer.get(address), 404, "not-found")


def test_a_rollout_is_paused_resumed_and_undone(engineer: APIClient, company: Company) -> None:
    address = (
        f"{API}/deployments/{deploy(engineer, company, max_surge='0', max_unavailable=1)['uid']}"
    )
    serve(company)
    assert engineer.get(address).json()["rollout"] == {
        "phase": "complete",
        "revision": 1,
        "serving_revision": 1,
        "replicas": 1,
        "updated_replicas": 1,
        "updated_ready_replicas": 1,
        "old_replicas": 0,
        "old_ready_replicas": 0,
        "max_surge": 0,
        "max_unavailable": 1,
    }
    refused = engineer.patch(address, {"max_unavailable": "0%"})
    assert (
        "may not be 0 when max_surge is 0"
        in wrong_fields(refused, 422, "spec-refused")["max_unavailable"]
    )
    assert engineer.patch(address, {"max_surge": "25%"}).json()["rollout"]["max_surge"] == 1

    assert engineer.post(f"{address}/rollout/pause").json()["paused_at"]
    problem(engineer.post(f"{address}/rollout/pause"), 409, "illegal-transition")
    waiting = engineer.post(f"{address}/revise", {"model_version": company.model.uid}).json()
    assert (waiting["rollout"]["phase"], waiting["rollout"]["revision"]) == ("paused", 2)
    assert "resume it first" in str(engineer.post(f"{address}/rollout/undo").json())

    resumed = engineer.post(f"{address}/rollout/resume").json()
    assert (resumed["rollout"]["phase"], resumed["paused_at"]) == ("progressing", None)
    problem(engineer.post(f"{address}/rollout/resume"), 409, "illegal-transition")
    undone = engineer.post(f"{address}/rollout/undo").json()
    assert (undone["rollout"]["phase"], undone["rollout"]["revision"]) == ("failed", 1)
    assert undone["revisions"][0]["failure_reason"]["code"] == "rollout.undone"
    again = engineer.post(f"{address}/rollout/undo")
    assert "there is no earlier revision" in wrong_fields(again, 422, "spec-refused")["to_revision"]
    newer = engineer.post(f"{address}/rollout/undo", {"to_revision": 2}).json()
    assert newer["rollout"]["revision"] == 3


def test_what_cannot_be_served_is_refused(engineer: APIClient, company: Company) -> None:
    for changes, field in (
        ({"chips": ["abacus"]}, "chips"),
        ({"engine": "steam"}, "engine"),
        ({"spec": {"refuse": "no"}}, "refuse"),
    ):
        refused = engineer.post(f"{API}/deployments", body(company, **changes))
        assert field in wrong_fields(refused, 422, "spec-refused")
    none = engineer.post(f"{API}/deployments", body(company, replicas=0))
    assert "replicas" in wrong_fields(none)
    deploy(engineer, company)
    taken = engineer.post(f"{API}/deployments", body(company))
    assert "is already in use" in wrong_fields(taken, 422, "spec-refused")["name"]


def test_a_deployment_beyond_the_pending_claims_of_its_user_is_refused(
    engineer: APIClient, company: Company, settings: Settings
) -> None:
    settings.NINEFOLD_PENDING_PER_USER = 2
    refused = engineer.post(f"{API}/deployments", body(company, replicas=3))
    assert wrong_fields(refused, 422, "spec-refused")["replicas"].startswith(
        f"user {company.engineer.username} has 0 pending claims and submits 3 more; the limit is 2"
    )
    deploy(engineer, company, replicas=2)


def test_a_viewer_may_look_and_not_touch(
    engineer: APIClient, viewer: APIClient, company: Company
) -> None:
    address = f"{API}/deployments/{deploy(engineer, company)['uid']}"
    assert viewer.get(address).status_code == 200
    for path, sent in (
        (f"{API}/deployments", body(company, name="other")),
        (f"{address}/scale", {"replicas": 2}),
        (f"{address}/revise", {"model_version": company.model.uid}),
        (f"{address}/stop", None),
        (f"{address}/start", None),
        (f"{address}/rollout/pause", None),
        (f"{address}/rollout/resume", None),
        (f"{address}/rollout/undo", None),
        (f"{API}/keys", {"name": "mine"}),
    ):
        problem(viewer.post(path, sent), 403, "permission-refused")
    problem(viewer.delete(address), 403, "permission-refused")


def test_another_teams_deployment_key_and_usage_are_not_found(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    address = f"{API}/deployments/{deploy(engineer, company)['uid']}"
    serve(company)
    key = engineer.post(f"{API}/keys", {"name": "shop"}).json()
    replica = Replica.objects.get()
    for path in (address, f"{API}/replicas/{replica.uid}/log", f"{API}/keys/{key['uid']}"):
        problem(stranger.get(path), 404, "not-found")
    for verb in ("stop", "start", "scale", "revise"):
        problem(stranger.post(f"{address}/{verb}", {}), 404, "not-found")
    problem(stranger.delete(f"{API}/keys/{key['uid']}"), 404, "not-found")
    assert stranger.get(f"{API}/deployments").json()["results"] == []
    assert ApiKey.objects.get().revoked_at is None


def test_a_key_is_shown_once_and_revoked(engineer: APIClient) -> None:
    sent = {"name": "shop", "routes": ["address-parser"], "requests_per_minute": 60}
    created = engineer.post(f"{API}/keys", sent).json()
    digest = hashlib.sha256(created["text"].encode()).hexdigest()
    assert ApiKey.objects.get().digest == digest
    shown = engineer.get(f"{API}/keys").content.decode()
    assert created["text"] not in shown
    assert digest not in shown
    for _ in range(2):
        assert engineer.delete(f"{API}/keys/{created['uid']}").status_code == 204
    assert engineer.get(f"{API}/keys/{created['uid']}").json()["revoked_at"] is not None


@for_each_case(
    ("field", "value"),
    [
        ("requests_per_minute", 0),
        ("routes", ["not a slug"]),
        ("expires_at", "2020-01-01T00:00:00Z"),
        ("concurrency", "many"),
    ],
)
def test_a_key_with_a_wrong_field_is_refused(
    engineer: APIClient, field: str, value: object
) -> None:
    refused = engineer.post(f"{API}/keys", {"name": "shop", field: value})
    assert field in {name.partition(".")[0] for name in wrong_fields(refused)}


def record(key: str, at: datetime, **changes: Any) -> dict[str, Any]:
    return {
        "at": at.isoformat(),
        "key": key,
        "route": "address-parser",
        "backend": None,
        "operation": "chat",
        "status": 200,
        "outcome": "ok",
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "duration_ms": 12.5,
        "first_token_ms": None,
        **changes,
    }


def test_usage_is_listed_and_summed_by_time_key_and_route(
    engineer: APIClient, stranger: APIClient
) -> None:
    key = engineer.post(f"{API}/keys", {"name": "shop"}).json()["uid"]
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    records = [
        record(key, noon),
        record(key, noon + timedelta(hours=1), route="other"),
        record(key, noon + timedelta(hours=2), outcome="aborted"),
    ]
    gateways.usage_batch_record(gateway="g", sequence=1, records=records)
    totals = {
        "": (3, 30, 15),
        "?route=other": (1, 10, 5),
        "?outcome=aborted": (1, 10, 5),
        f"?key={key}&from=2026-11-20T13:00:00Z": (2, 20, 10),
        "?to=2026-11-20T13:00:00Z": (1, 10, 5),
    }
    for query, expected in totals.items():
        assert tuple(engineer.get(f"{API}/usage/totals{query}").json().values()) == expected, query
    listed = engineer.get(f"{API}/usage?route=other").json()["results"]
    assert [each["key"]["uid"] for each in listed] == [key]
    assert stranger.get(f"{API}/usage/totals").json()["calls"] == 0
    assert "from" in wrong_fields(engineer.get(f"{API}/usage?from=yesterday"))
    assert timezone.now() > noon


def test_weights_are_downloaded_to_nodes_in_advance(
    engineer: APIClient, company: Company, settings: Settings
) -> None:
    address, node = f"{API}/weight-downloads", Node.objects.get()
    body = {"model_version": "tiny@1", "cluster": company.cluster_row.name}
    refused = problem(engineer.post(address, body), status=422, code="spec-refused")
    assert "no weight cache" in refused["errors"][0]["message"]
    # Nothing is asked of the store before the download begins.
    settings.NINEFOLD_S3 = store_options("http://127.0.0.1:9", "bucket")
    settings.NINEFOLD_ARTIFACTS = "s3"
    company.cluster.set_weight_cache(MIB)
    refused = problem(
        engineer.post(address, {**body, "nodes": ["absent"]}), status=422, code="spec-refused"
    )
    assert refused["errors"][0]["field"] == "nodes"
    dry = engineer.post(f"{address}?dry_run=true", body)
    assert (dry.status_code, engineer.get(address).json()["results"]) == (201, [])
    created = engineer.post(address, {**body, "chip": "cpu"})
    assert created.status_code == 201, created.content
    (row,) = created.json()
    assert (row["node"], row["state"], row["downloaded"]) == (node.name, "pending", 0)
    assert row["model_version"]["name"] == "tiny v1"
    (again,) = engineer.post(address, body).json()
    assert again["uid"] == row["uid"]
    one = f"{address}/{row['uid']}"
    assert engineer.get(one).json() == row
    for query, count in (
        (f"node={node.name}", 1),
        ("state=failed", 0),
        ("model_version=tiny@1", 1),
        (f"cluster={company.cluster_row.name}", 1),
    ):
        assert len(engineer.get(f"{address}?{query}").json()["results"]) == count, query
    cancelled = engineer.delete(one)
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "stopping")
    reconcilers.weight_downloads_reconcile(at=company.at)
    assert engineer.get(one).json()["state"] == "cancelled"
    assert engineer.delete(one).status_code == 204
    assert engineer.get(one).status_code == 404

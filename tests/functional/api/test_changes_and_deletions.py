"""Changes and deletions of datasets, models, gateway keys and personal tokens."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import AuditEntry, PersonalToken
from apps.accounts.services import token_create
from apps.models.models import ModelLine
from apps.serving.selectors import gateway_snapshot_content
from apps.serving.services.gateways import api_key_create
from controlplane.domain.common.permissions import Scope
from tests import factories
from tests.functional.api.callers import API, caller, problem, wrong_fields
from tests.integration.company import Company, ready_model, rows


@pytest.fixture
def administrator(company: Company) -> APIClient:
    return caller(factories.user("root", admin=True))


def upload(client: APIClient, count: int, name: str = "orders") -> dict[str, str]:
    form = {"name": name, "file": SimpleUploadedFile("rows.jsonl", rows(count).getvalue())}
    created = client.post(f"{API}/datasets", form, format="multipart")
    assert created.status_code == 201, created.content
    body: dict[str, str] = created.json()
    return body


def test_a_dataset_is_renamed_and_described(
    engineer: APIClient, viewer: APIClient, stranger: APIClient
) -> None:
    version = upload(engineer, 20)
    upload(engineer, 21, name="returns")
    uid = engineer.get(f"{API}/dataset-versions/{version['uid']}").json()["dataset"]["uid"]
    address = f"{API}/datasets/{uid}"
    changed = engineer.patch(address, {"name": "tickets", "description": "of the shop"})
    assert changed.status_code == 200, changed.content
    assert (changed.json()["name"], changed.json()["description"]) == ("tickets", "of the shop")
    entry = AuditEntry.objects.get(action="dataset.change")
    assert entry.detail["changes"] == {
        "name": ["orders", "tickets"],
        "description": ["", "of the shop"],
    }
    # A change to the same values is none.
    assert engineer.patch(address, {"name": "tickets"}).status_code == 200
    assert AuditEntry.objects.filter(action="dataset.change").count() == 1
    taken = engineer.patch(address, {"name": "returns"})
    assert "returns is already in use" in wrong_fields(taken, 409, "change-refused")["name"]
    assert "rows" in wrong_fields(engineer.patch(address, {"rows": 3}))
    problem(viewer.patch(address, {"name": "mine"}), 403, "permission-refused")
    problem(stranger.patch(address, {"name": "mine"}), 404, "not-found")


def test_a_dataset_is_deleted_with_its_versions_and_restored(
    engineer: APIClient, viewer: APIClient
) -> None:
    first, second = upload(engineer, 20), upload(engineer, 21)
    uid = engineer.get(f"{API}/datasets?name=orders").json()["results"][0]["uid"]
    artifact = engineer.get(f"{API}/dataset-versions/{first['uid']}").json()["artifact"]
    engineer.post(f"{API}/storage/artifacts/{artifact}/pin")
    refused = problem(engineer.delete(f"{API}/datasets/{uid}"), 409, "deletion-refused")
    assert refused["reasons"] == ["orders v1: it is pinned"]
    engineer.post(f"{API}/storage/artifacts/{artifact}/unpin")
    problem(viewer.delete(f"{API}/datasets/{uid}"), 403, "permission-refused")
    assert engineer.delete(f"{API}/datasets/{uid}").status_code == 204
    assert engineer.get(f"{API}/datasets?name=orders").json()["results"] == []
    problem(engineer.get(f"{API}/datasets/{uid}"), 404, "not-found")
    problem(engineer.get(f"{API}/dataset-versions/{second['uid']}"), 404, "not-found")
    # The name is free, and the same rows are a new version 1.
    again = upload(engineer, 20)
    assert (again["name"], again["uid"] != first["uid"]) == ("orders v1", True)
    taken = engineer.post(f"{API}/storage/artifacts/{artifact}/restore")
    assert "named orders" in problem(taken, 409, "deletion-refused")["detail"]
    new = engineer.get(f"{API}/datasets?name=orders").json()["results"][0]["uid"]
    engineer.patch(f"{API}/datasets/{new}", {"name": "orders-2"})
    assert engineer.post(f"{API}/storage/artifacts/{artifact}/restore").status_code == 200
    assert engineer.get(f"{API}/datasets/{uid}").json()["name"] == "orders"


def test_a_model_in_use_is_not_deleted(engineer: APIClient, company: Company) -> None:
    company.running()
    address = f"{API}/models/{company.model.line.uid}"
    refused = problem(engineer.delete(address), 409, "deletion-refused")
    assert refused["reasons"] == ["tiny v1: job tune the parser is running"]
    assert "tiny cannot be deleted: tiny v1: job" in refused["detail"]
    assert refused["reason"]["code"] == "artifact.deletion.refused"
    unused = ready_model(team=company.team, name="unused")
    assert engineer.delete(f"{API}/models/{unused.line.uid}").status_code == 204
    assert AuditEntry.objects.get(action="modelline.delete").object_name == "unused"
    # The job of a deleted model is still there.
    assert "tune the parser" in str(engineer.get(f"{API}/jobs").json())


def test_a_model_is_shared_and_assigned_by_administrators_of_the_company(
    engineer: APIClient, stranger: APIClient, administrator: APIClient, company: Company
) -> None:
    line = company.model.line
    address = f"{API}/models/{line.uid}"
    assert engineer.patch(address, {"description": "parses"}).json()["description"] == "parses"
    problem(engineer.patch(address, {"team": None}), 403, "permission-refused")
    problem(stranger.get(address), 404, "not-found")
    shared = administrator.patch(address, {"team": None})
    assert (shared.status_code, shared.json()["team"]) == (200, None)
    assert stranger.get(address).json()["name"] == "tiny"
    problem(engineer.patch(address, {"name": "other"}), 403, "permission-refused")
    # Whoever uses it would lose it.
    company.running()
    refused = administrator.patch(address, {"team": company.team.slug})
    assert "job tune the parser is running" in wrong_fields(refused, 409, "change-refused")["team"]
    other = ready_model(team=None, name="open")
    assigned = administrator.patch(f"{API}/models/{other.line.uid}", {"team": company.team.slug})
    assert assigned.json()["team"]["uid"] == company.team.uid
    moved = ModelLine.objects.get(pk=other.line.pk).versions.get().artifact
    assert moved is not None
    assert moved.team == company.team


def test_the_limits_of_a_gateway_key_are_changed(
    engineer: APIClient, viewer: APIClient, company: Company
) -> None:
    key, _ = api_key_create(
        actor=company.engineer, team=company.team, name="shop", at=timezone.now(), concurrency=3
    )
    address = f"{API}/keys/{key.uid}"
    expires = (timezone.now() + timedelta(days=30)).isoformat()
    body = {
        "name": "web shop",
        "requests_per_minute": 60,
        "concurrency": None,
        "expires_at": expires,
    }
    changed = engineer.patch(address, body)
    assert changed.status_code == 200, changed.content
    assert changed.json()["requests_per_minute"] == 60
    assert (changed.json()["concurrency"], changed.json()["name"]) == (None, "web shop")
    (published,) = gateway_snapshot_content(at=timezone.now())["keys"]
    assert 60 in published.values()
    assert AuditEntry.objects.get(action="key.change").detail["fields"] == [
        "name",
        "requests_per_minute",
        "concurrency",
        "expires_at",
    ]
    assert "expires_at" in wrong_fields(
        engineer.patch(address, {"expires_at": "2020-01-01T00:00Z"})
    )
    problem(viewer.patch(address, {"name": "mine"}), 403, "permission-refused")
    engineer.delete(address)
    refused = problem(engineer.patch(address, {"name": "late"}), 409, "change-refused")
    assert refused["reason"]["code"] == "api_key.change.ended"


def test_a_personal_token_is_renamed_and_nothing_else(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    for name in ("nightly", "weekly"):
        token_create(user=company.engineer, name=name, scopes=frozenset({Scope.READ}))
    mine = PersonalToken.objects.get(user=company.engineer, name="nightly")
    address = f"{API}/tokens/{mine.uid}"
    assert engineer.patch(address, {"name": "hourly"}).json()["name"] == "hourly"
    assert engineer.get(address).json()["scopes"] == ["read"]
    assert "name" in wrong_fields(engineer.patch(address, {"name": "weekly"}), 422, "refused")
    assert "scopes" in wrong_fields(engineer.patch(address, {"scopes": ["all"]}))
    problem(stranger.patch(address, {"name": "mine"}), 404, "not-found")

"""Storage by REST: use, quotas, rules, and deleting with a way back."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.models.models import RetentionRule, StorageQuota
from tests.functional.api.callers import caller
from tests.integration.company import Company, ready_model

RULES = {
    "enabled": True,
    "keep_versions": 1,
    "checkpoint_days": None,
    "failed_days": 7,
    "log_days": None,
}


@pytest.fixture
def administrator(company: Company) -> APIClient:
    return caller(User.objects.create(username="root", is_superuser=True, is_staff=True))


def test_usage_is_listed_by_team(engineer: APIClient, company: Company) -> None:
    answer = engineer.get("/api/v1/storage").json()
    assert [row["team"]["uid"] for row in answer["teams"]] == [company.team.uid]
    row = answer["teams"][0]
    assert row["used"] == sum(row["by_kind"].values()) > 0
    assert row["level"] == "unlimited"
    assert answer["store"] is None


def test_the_company_sees_the_whole_store(administrator: APIClient, company: Company) -> None:
    answer = administrator.get("/api/v1/storage").json()
    assert answer["store"]["logical"] == sum(row["used"] for row in answer["teams"])


def test_a_quota_is_the_companys_to_set(
    administrator: APIClient, engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    address = f"/api/v1/storage/quotas/{company.team.uid}"
    assert engineer.put(address, {"limit": 5}, format="json").status_code == 403
    assert stranger.put(address, {"limit": 5}, format="json").status_code == 404
    answer = administrator.put(address, {"limit": 5}, format="json")
    assert answer.status_code == 200
    assert answer.json()["level"] == "full"
    assert administrator.put(address, {"limit": -1}, format="json").status_code == 400
    administrator.put(address, {"limit": None}, format="json")
    assert not StorageQuota.objects.exists()


def test_what_does_not_fit_is_refused_with_the_figures(
    engineer: APIClient, company: Company
) -> None:
    StorageQuota.objects.create(team=company.team, limit=0)
    body = {"team": company.team.uid, "file": SimpleUploadedFile("code.zip", b"archive")}
    answer = engineer.post("/api/v1/code", body, format="multipart")
    assert answer.status_code == 409
    problem = answer.json()
    assert problem["code"] == "storage-quota-exceeded"
    assert problem["limit"] == 0
    assert problem["wanted"] == 7
    assert "storage page" in problem["detail"]


def test_rules_are_shown_as_a_plan_before_they_apply(
    administrator: APIClient, company: Company
) -> None:
    for _ in range(2):
        ready_model(team=company.team, name="old-line")
    address = f"/api/v1/storage/rules/{company.team.uid}"
    off = {**RULES, "enabled": False}
    assert administrator.put(address, off, format="json").status_code == 200
    assert administrator.get("/api/v1/storage/plan").json()["removals"] == []
    preview = administrator.get("/api/v1/storage/plan", {"team": company.team.uid}).json()
    assert [row["name"] for row in preview["removals"]] == ["old-line v1"]
    assert administrator.delete(address).status_code == 204
    assert not RetentionRule.objects.exists()


def test_rules_of_all_others_are_the_companys(
    administrator: APIClient, engineer: APIClient
) -> None:
    address = "/api/v1/storage/rules/others"
    assert engineer.put(address, RULES, format="json").status_code == 403
    assert administrator.put(address, RULES, format="json").status_code == 200
    assert engineer.get("/api/v1/storage/rules").json()[0]["rules"]["failed_days"] == 7


def test_deleting_is_refused_while_a_job_runs_with_it(
    engineer: APIClient, company: Company
) -> None:
    company.running()
    artifact = company.model.artifact
    assert artifact is not None
    answer = engineer.delete(f"/api/v1/storage/artifacts/{artifact.uid}")
    assert answer.status_code == 409
    assert answer.json()["reasons"] == ["job tune the parser is running"]


def test_a_deleted_version_can_be_restored(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    artifact = company.model.artifact
    assert artifact is not None
    address = f"/api/v1/storage/artifacts/{artifact.uid}"
    assert stranger.delete(address).status_code == 404
    assert engineer.delete(address).json()["deleted_by"] == "mei"
    assert engineer.get(f"/api/v1/model-versions/{company.model.uid}").json()["state"] == "deleted"
    assert engineer.post(f"{address}/restore").json()["deleted_at"] is None
    assert engineer.post(f"{address}/pin").json()["pinned_at"] is not None
    assert engineer.delete(address).status_code == 409
    assert engineer.post(f"{address}/unpin").json()["pinned_at"] is None


def test_runs_are_visible_to_company_administrators_only(
    engineer: APIClient, administrator: APIClient
) -> None:
    assert engineer.get("/api/v1/storage/runs").json()["results"] == []
    assert administrator.get("/api/v1/storage/runs").status_code == 200

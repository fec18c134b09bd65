"""The storage page: what it says, and what people can do there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from apps.accounts.models import AuditEntry
from apps.models.models import Artifact, ModelLine, RetentionRule, StorageQuota
from apps.models.services.storage_cleanup import (
    garbage_collect,
    measure_artifact_storage,
    run_retention,
)
from controlplane.domain.common.permissions import TeamRole
from tests import factories
from tests.functional.sample_rows import EmptyCompany, FilledCompany


@pytest.fixture
def company(empty: EmptyCompany) -> Client:
    """Logged in as an administrator of the company."""
    client = Client()
    client.force_login(factories.user("root", admin=True))
    return client


@pytest.mark.parametrize("tab", ["use", "biggest", "deleted", "retention"])
def test_every_part_says_what_is_missing_on_the_first_day(browser: Client, tab: str) -> None:
    assert browser.get("/storage", {"tab": tab}).status_code == 200


@pytest.mark.parametrize("tab", ["use", "biggest", "deleted", "retention", "runs"])
def test_an_administrator_sees_every_part(company: Client, filled: FilledCompany, tab: str) -> None:
    measure_artifact_storage(at=timezone.now())
    garbage_collect(at=timezone.now())
    run_retention(at=timezone.now())
    assert company.get("/storage", {"tab": tab}).status_code == 200


def test_the_page_says_how_much_each_team_uses_of_what(
    browser: Client, filled: FilledCompany
) -> None:
    StorageQuota.objects.create(team=filled.team, limit=1)
    text = browser.get("/storage").content.decode()
    assert "over quota" in text
    assert "Model versions" in text


def test_a_deleted_artifact_can_be_restored(browser: Client, filled: FilledCompany) -> None:
    spare = factories.model_version(actor=filled.user, team=filled.team, name="spare")
    artifact = spare.artifact
    assert artifact is not None
    browser.post(f"/storage/artifacts/{artifact.uid}/delete")
    spare.refresh_from_db()
    assert spare.state == "deleted"
    assert "spare v1" in browser.get("/storage?tab=deleted").content.decode()
    browser.post(f"/storage/artifacts/{artifact.uid}/restore")
    spare.refresh_from_db()
    assert spare.state == "ready"


def test_one_form_pins_whichever_is_chosen(browser: Client, filled: FilledCompany) -> None:
    spare = factories.model_version(actor=filled.user, team=filled.team, name="spare")
    artifact = spare.artifact
    assert artifact is not None
    for action, pinned in (("pin", True), ("unpin", False)):
        address = f"/storage/artifacts/{artifact.uid}/{action}"
        text = browser.get("/storage?tab=biggest").content.decode()
        assert text.count('<form method="post" id="pins">') == 1
        assert f'form="pins" formaction="{address}"' in text
        browser.post(address)
        artifact.refresh_from_db()
        assert (artifact.pinned_at is not None) is pinned


def test_a_refusal_says_what_depends_on_it(browser: Client, filled: FilledCompany) -> None:
    artifact = filled.tuned.artifact
    assert artifact is not None
    answer = browser.post(f"/storage/artifacts/{artifact.uid}/delete", follow=True)
    assert "of deployment parcels uses the files" in answer.content.decode()
    artifact.refresh_from_db()
    assert artifact.deleted_at is None


def test_a_viewer_cannot_delete(viewer: Client, filled: FilledCompany) -> None:
    artifact = Artifact.objects.filter(team=filled.team).latest("pk")
    assert viewer.post(f"/storage/artifacts/{artifact.uid}/delete").status_code == 403


def test_what_belongs_to_another_team_is_not_there(outsider: Client, filled: FilledCompany) -> None:
    artifact = Artifact.objects.filter(team=filled.team).latest("pk")
    assert outsider.post(f"/storage/artifacts/{artifact.uid}/delete").status_code == 404
    assert outsider.get(f"/storage/quotas/{filled.team.uid}").status_code == 404
    assert outsider.get(f"/storage/rules/{filled.team.uid}").status_code == 404
    assert "well" not in outsider.get("/storage?tab=biggest").content.decode().split("<main")[1]


def test_only_the_company_sets_quotas(
    browser: Client, company: Client, filled: FilledCompany
) -> None:
    address = f"/storage/quotas/{filled.team.uid}"
    assert browser.post(address, {"limit": "5"}).status_code == 403
    assert company.post(address, {"limit": "1.5"}).status_code == 302
    assert filled.team.storage_quota.limit == 3 << 29
    entry = AuditEntry.objects.filter(action="storage.quota").latest("pk")
    assert entry.detail == {"before": None, "after": 3 << 29}
    company.post(address, {"limit": ""})
    assert not StorageQuota.objects.exists()


def test_the_form_of_rules_shows_what_would_go_before_they_apply(
    client: Client, filled: FilledCompany
) -> None:
    client.force_login(factories.user("ann", team=filled.team, role=TeamRole.ADMINISTRATOR))
    for _ in range(2):
        factories.model_version(actor=filled.user, team=filled.team, name="old-line")
    address = f"/storage/rules/{filled.team.uid}"
    shown = client.post(
        f"{address}?check=1", {"keep_versions": "1"}, headers={"HX-Request": "true"}
    )
    assert "old-line v1" in shown.content.decode()
    assert not RetentionRule.objects.exists()
    client.post(address, {"keep_versions": "1", "enabled": "on"})
    assert RetentionRule.objects.get().team == filled.team
    client.post(f"{address}/forget")
    assert not RetentionRule.objects.exists()


def test_files_of_a_failed_job_can_be_removed(browser: Client, filled: FilledCompany) -> None:
    attempt = filled.failed.attempts.latest("number")
    attempt.uploads.create(path="half.bin", digest=f"sha256:{'ab' * 32}", size=12345)
    assert "/storage/left/uploads/" in browser.get("/storage?tab=biggest").content.decode()
    browser.post(f"/storage/left/uploads/{attempt.uid}")
    assert not attempt.uploads.exists()


def test_a_running_job_keeps_its_folder(browser: Client, filled: FilledCompany) -> None:
    attempt = filled.running.attempts.latest("number")
    assert browser.post(f"/storage/left/checkpoints/{attempt.uid}").status_code == 404
    attempt.refresh_from_db()
    assert attempt.removed_at is None


def test_an_upload_that_does_not_fit_is_refused_on_its_page(
    browser: Client, empty: EmptyCompany
) -> None:
    StorageQuota.objects.create(team=empty.team, limit=10)
    file = SimpleUploadedFile("rows.jsonl", b'{"instruction": "a", "output": "b"}\n' * 5)
    answer = browser.post("/datasets/new", {"team": empty.team.uid, "name": "rows", "file": file})
    assert answer.status_code == 422
    assert "of its quota of 10 B" in answer.content.decode()
    assert not Artifact.objects.exists()


def test_after_a_week_an_artifact_cannot_be_restored(
    browser: Client, filled: FilledCompany
) -> None:
    spare = factories.model_version(actor=filled.user, team=filled.team, name="spare")
    artifact = spare.artifact
    assert artifact is not None
    browser.post(f"/storage/artifacts/{artifact.uid}/delete")
    run_retention(at=timezone.now() + timedelta(days=8))
    spare.refresh_from_db()
    assert spare.state == "removed"
    answer = browser.post(f"/storage/artifacts/{artifact.uid}/restore", follow=True)
    assert "nothing to have back" in answer.content.decode()
    shown = browser.get(f"/models/versions/{spare.uid}").content.decode()
    assert "Data deleted: deleted by ada." in shown


def test_a_shared_model_cannot_be_deleted_by_its_creator(
    browser: Client, company: Client, filled: FilledCompany
) -> None:
    """One team is charged for it, and every team may rely on it."""
    shared = factories.model_version(actor=filled.user, team=filled.team, name="shared")
    ModelLine.objects.filter(pk=shared.line_id).update(team=None)
    artifact = shared.artifact
    assert artifact is not None
    assert artifact.team == filled.team
    for action in ("delete", "pin"):
        assert browser.post(f"/storage/artifacts/{artifact.uid}/{action}").status_code == 403
    company.post(f"/storage/artifacts/{artifact.uid}/delete")
    shared.refresh_from_db()
    assert shared.state == "deleted"

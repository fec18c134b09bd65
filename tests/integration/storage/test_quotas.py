"""Nobody adds more than fits; what jobs make is kept."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from apps.jobs.services import SpecRefused
from apps.models.models import Artifact, DatasetVersion, ModelVersion, StorageQuota
from apps.models.reconcilers import folder_imports_reconcile
from apps.models.selectors import artifact_store
from apps.models.selectors.storage import storage_usage_of_team
from apps.models.services.artifact_storage import code_upload
from apps.models.services.datasets import dataset_upload
from apps.models.services.model_versions import model_version_import
from controlplane.domain.storage.team_storage import (
    StorageKind,
    StorageQuotaExceeded,
    StorageQuotaLevel,
)
from tests.integration.company import Company, rows, write_model
from tests.integration.threads import at_once, raised


def limit(company: Company, *, room: int) -> None:
    """Let the team store so many bytes more than it does."""
    used = storage_usage_of_team(company.team).used
    StorageQuota.objects.update_or_create(team=company.team, defaults={"limit": used + room})


def blobs() -> set[str]:
    return {blob.digest for blob in artifact_store().blobs()}


def test_an_upload_that_does_not_fit_is_refused_before_a_byte_is_written(company: Company) -> None:
    limit(company, room=100)
    before = blobs()
    with pytest.raises(StorageQuotaExceeded, match="more storage is required"):
        dataset_upload(
            actor=company.engineer,
            team=company.team,
            name="more",
            stream=rows(100),
            filename="more.jsonl",
        )
    assert blobs() == before


def test_an_archive_of_code_that_does_not_fit_is_refused(company: Company) -> None:
    limit(company, room=10)
    before = blobs()
    with pytest.raises(StorageQuotaExceeded):
        code_upload(
            actor=company.engineer,
            team=company.team,
            stream=io.BytesIO(b"x" * 11),
            filename="code.zip",
        )
    assert blobs() == before
    code_upload(
        actor=company.engineer, team=company.team, stream=io.BytesIO(b"x" * 10), filename="code.zip"
    )


def test_an_import_that_does_not_fit_is_refused_on_request(
    company: Company, tmp_path: Path
) -> None:
    folder = write_model(tmp_path / "models" / "big")
    limit(company, room=10)
    with pytest.raises(StorageQuotaExceeded):
        model_version_import(
            actor=company.engineer, team=company.team, name="big", path=str(folder)
        )
    assert not ModelVersion.objects.filter(line__name="big").exists()


def test_an_import_that_no_longer_fits_fails_with_the_reason(
    company: Company, tmp_path: Path
) -> None:
    folder = write_model(tmp_path / "models" / "big")
    version = model_version_import(
        actor=company.engineer, team=company.team, name="big", path=str(folder)
    )
    limit(company, room=10)
    folder_imports_reconcile(at=company.at)
    version.refresh_from_db()
    assert version.state == "failed"
    last = version.transitions.last()
    assert last is not None
    assert "more storage is required" in last.reason


def test_two_uploads_at_once_cannot_both_take_the_last_bytes(committed_company: Company) -> None:
    company = committed_company
    size = 64
    limit(company, room=size * 3)

    def upload(number: int) -> Artifact:
        stream = io.BytesIO(bytes([number]) * size)
        return code_upload(
            actor=company.engineer, team=company.team, stream=stream, filename="code.zip"
        )

    outcomes = at_once(*(lambda number=n: upload(number) for n in range(8)))
    assert raised(outcomes, StorageQuotaExceeded) == 5
    use = storage_usage_of_team(company.team)
    assert use.used == use.limit


def test_other_teams_are_not_blocked(company: Company) -> None:
    limit(company, room=0)
    code_upload(
        actor=company.engineer,
        team=company.other_team,
        stream=io.BytesIO(b"x" * 100),
        filename="code.zip",
    )


def test_outputs_beyond_the_quota_are_stored_and_new_jobs_are_refused(company: Company) -> None:
    job, attempt = company.running()
    limit(company, room=1)
    company.finish(attempt)
    company.turn_jobs()
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == "succeeded"
    assert storage_usage_of_team(company.team).level is StorageQuotaLevel.FULL
    with pytest.raises(SpecRefused, match="of its storage quota"):
        company.submit("one more")


def test_uploads_of_an_attempt_are_charged_once(company: Company) -> None:
    before = storage_usage_of_team(company.team)
    _, attempt = company.running()
    company.report_outputs(attempt)
    handed = storage_usage_of_team(company.team)
    assert handed.by_kind[StorageKind.JOB_FILES] > before.by_kind[StorageKind.JOB_FILES]
    company.cluster.finish(attempt.launch_name)
    company.turn_jobs()
    company.turn_jobs()
    after = storage_usage_of_team(company.team)
    assert after.by_kind[StorageKind.JOB_FILES] == before.by_kind[StorageKind.JOB_FILES]
    assert after.by_kind[StorageKind.VERSIONS] > before.by_kind[StorageKind.VERSIONS]


def test_restored_rows_are_charged_again(company: Company) -> None:
    used = storage_usage_of_team(company.team).used
    version = DatasetVersion.objects.get()
    Artifact.objects.filter(pk=version.artifact_id).update(removed_at=company.at)
    assert storage_usage_of_team(company.team).used < used
    again = dataset_upload(
        actor=company.engineer,
        team=company.team,
        name="addresses",
        stream=rows(40),
        filename="rows.jsonl",
    )
    assert again == version
    assert storage_usage_of_team(company.team).used == used

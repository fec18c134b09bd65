"""Datasets: inspection and upload of files as dataset versions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from apps.accounts.models import Team, User
from apps.accounts.services import record_audit_entry
from apps.models import selectors
from apps.models.models import ArtifactKind, Dataset, DatasetVersion
from apps.models.services.artifact_storage import (
    File,
    artifact_create,
    artifact_restore_on_reupload,
    precheck_storage_quota,
)
from controlplane.domain.common.reasons import ReasonedError
from controlplane.domain.datasets.inspection import Inspection, inspect_dataset
from controlplane.domain.datasets.schemas import ColumnMapping
from controlplane.domain.datasets.validation import FileLimits
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.transactions import is_dry_run

#: Length of the column; file names can be longer.
_MAX_SOURCE_NAME_LENGTH = 200


class DuplicateUpload(ReasonedError):
    """A version with the same rows already exists."""

    def __init__(self, existing: DatasetVersion) -> None:
        super().__init__(
            "dataset.version.already_exists",
            "this data already exists as {version}; no version was added",
            version=str(existing),
        )
        self.existing = existing


def dataset_inspect(
    *, stream: BinaryIO, filename: str, columns: ColumnMapping | None = None
) -> Inspection:
    """Inspect the file without storing anything.

    :raises DatasetRefused: naming each row that is wrong.
    """
    limits = FileLimits(size=settings.NINEFOLD_UPLOAD_LIMIT)
    return inspect_dataset(stream, filename=filename, limits=limits, columns=columns)


def dataset_upload(
    *,
    actor: User,
    team: Team,
    name: str,
    stream: BinaryIO,
    filename: str,
    columns: ColumnMapping | None = None,
    description: str = "",
) -> DatasetVersion:
    """Create a version of the named dataset, which is created if absent; a deleted version with the same rows is
    restored instead.

    :raises DatasetRefused: if anything in the file is wrong; nothing is stored then.
    :raises DuplicateUpload: if the dataset has a version with the same rows.
    :raises StorageQuotaExceeded: if it exceeds the team's quota.
    :raises StorageFull: if the artifact store has no space.
    """
    inspection = dataset_inspect(stream=stream, filename=filename, columns=columns)
    known = (
        DatasetVersion.objects.filter(
            dataset__team=team,
            dataset__name=name,
            dataset__deleted_at=None,
            content_hash=inspection.digest,
        )
        .select_related("artifact")
        .first()
    )
    if known is not None and known.artifact.usable:
        raise DuplicateUpload(known)
    precheck_storage_quota(team=team, size=sum(file.size for file in inspection.files.values()))
    stream.seek(0)
    files = _store_splits(inspection, stream)
    return _dataset_version_create(
        actor=actor,
        team=team,
        name=name,
        description=description,
        filename=filename,
        inspection=inspection,
        files=files,
    )


def _store_splits(inspection: Inspection, stream: BinaryIO) -> list[File]:
    """Write the canonical file of each split; one pass over the upload per split."""
    if is_dry_run():
        return [(f"{split}.jsonl", one.digest, one.size) for split, one in inspection.files.items()]
    store = selectors.artifact_store()
    files: list[File] = []
    for split in inspection.files:
        stream.seek(0)
        rows = (line for part, line in inspection.canonical(stream) if part is split)
        blob = store.put(rows, expected=inspection.files[split].digest)
        files.append((f"{split}.jsonl", blob.digest, blob.size))
    return files


@transaction.atomic
def _dataset_version_create(
    *,
    actor: User,
    team: Team,
    name: str,
    description: str,
    filename: str,
    inspection: Inspection,
    files: list[File],
) -> DatasetVersion:
    dataset, created = _lock_or_create_dataset(
        actor=actor, team=team, name=name, description=description
    )
    # If two users upload the same file concurrently, the second finds the first's version here.
    known = (
        dataset.versions.filter(content_hash=inspection.digest).select_related("artifact").first()
    )
    if known is not None:
        return _restore_dataset_version(known, actor=actor)
    last = dataset.versions.aggregate(last=Max("number"))["last"] or 0
    version = DatasetVersion.objects.create(
        dataset=dataset,
        number=last + 1,
        artifact=artifact_create(team=team, kind=ArtifactKind.DATASET, files=files),
        content_hash=inspection.digest,
        # The end of the name, because it has the suffix.
        source_name=Path(filename).name[-_MAX_SOURCE_NAME_LENGTH:],
        row_count=inspection.rows,
        statistics=dataset_statistics_json(inspection),
        preview=[asdict(row) for row in inspection.preview],
        created_by=actor,
    )
    record_audit_entry(
        version,
        actor=actor,
        action="dataset.create" if created else "dataset.add_version",
        team=team,
        rows=inspection.rows,
    )
    return version


def _lock_or_create_dataset(
    *, actor: User, team: Team, name: str, description: str
) -> tuple[Dataset, bool]:
    """The dataset, locked against deletion until the commit, and whether it was created."""
    while True:
        dataset, created = Dataset.objects.get_or_create(
            team=team,
            name=name,
            deleted_at=None,
            defaults={"created_by": actor, "description": description},
        )
        lock_in_transaction(AdvisoryLock.NUMBER_VERSION, dataset.pk)
        if created or Dataset.objects.filter(pk=dataset.pk, name=name, deleted_at=None).exists():
            return dataset, created


def _restore_dataset_version(known: DatasetVersion, *, actor: User) -> DatasetVersion:
    """Restore a deleted version because the same rows were uploaded again.

    :raises DuplicateUpload: if it was not deleted.
    """
    if known.artifact.usable:
        raise DuplicateUpload(known)
    artifact_restore_on_reupload(artifact=known.artifact)
    record_audit_entry(known, actor=actor, action="dataset.revive", team=known.dataset.team)
    return known


def dataset_statistics_json(inspection: Inspection) -> dict[str, Any]:
    """Statistics in the format of ``DatasetVersion.statistics``."""
    statistics = inspection.statistics
    return {
        "format": inspection.format,
        "schema": inspection.schema,
        "rows_by_split": dict(statistics.rows),
        "duplicates": inspection.duplicates,
        "ignored_columns": list(inspection.ignored_columns),
        "roles": dict(statistics.roles),
        "prompt_characters": asdict(statistics.prompt),
        "answer_characters": asdict(statistics.answer),
        "histogram": list(statistics.histogram),
        "warnings": [asdict(warning) for warning in inspection.warnings],
        "characters": statistics.characters,
    }

"""Datasets: from an uploaded file to a version, or to a list of what is wrong with it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from apps.accounts.models import Team, User
from apps.accounts.services import audit
from apps.models import selectors
from apps.models.models import Artifact, Dataset, DatasetVersion
from apps.models.services.artifacts import File, artifact_create
from apps.models.services.storage import artifact_revive
from apps.models.services.storage_charges import storage_check_room
from controlplane.domain.datasets.inspections import Inspection, inspect
from controlplane.domain.datasets.refusals import Limits
from controlplane.domain.datasets.schemas import ColumnMapping
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction

#: What the column holds; a file's name may be longer.
_LONGEST_SOURCE_NAME = 200


class DuplicateUpload(Exception):
    """The same rows are there already."""

    def __init__(self, existing: DatasetVersion) -> None:
        super().__init__(f"these rows are already there as {existing}; nothing was added")
        self.existing = existing


def dataset_inspect(
    *, stream: BinaryIO, filename: str, columns: ColumnMapping | None = None
) -> Inspection:
    """What is in the file, without keeping anything.

    :raises DatasetRefused: naming each row that is wrong.
    """
    limits = Limits(size=settings.NINEFOLD_UPLOAD_LIMIT)
    return inspect(stream, filename=filename, limits=limits, columns=columns)


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
    """A new version of the named dataset, which is created if absent; or the one with the same rows,
    if its own had been deleted.

    :raises DatasetRefused: if anything in the file is wrong; nothing is kept then.
    :raises DuplicateUpload: if the dataset has a version with the same rows.
    :raises StorageQuotaExceeded: if it is more than the team may still store.
    :raises StorageFull: if the artifact store has no room.
    """
    inspection = dataset_inspect(stream=stream, filename=filename, columns=columns)
    known = (
        DatasetVersion.objects.filter(
            dataset__team=team, dataset__name=name, content_hash=inspection.digest
        )
        .select_related("artifact")
        .first()
    )
    if known is not None and known.artifact.usable:
        raise DuplicateUpload(known)
    storage_check_room(team=team, size=sum(file.size for file in inspection.files.values()))
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
    """Write the canonical file of each split; one pass over the upload for each."""
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
    dataset, created = Dataset.objects.get_or_create(
        team=team, name=name, defaults={"created_by": actor, "description": description}
    )
    lock_in_transaction(AdvisoryLock.NUMBER_VERSION, dataset.pk)
    # Two people may upload the same file at once: the second finds the first's version here.
    known = (
        dataset.versions.filter(content_hash=inspection.digest).select_related("artifact").first()
    )
    if known is not None:
        return _dataset_version_revive(known, actor=actor)
    last = dataset.versions.aggregate(last=Max("number"))["last"] or 0
    version = DatasetVersion.objects.create(
        dataset=dataset,
        number=last + 1,
        artifact=artifact_create(team=team, kind=Artifact.Kind.DATASET, files=files),
        content_hash=inspection.digest,
        # The end, because it has the suffix.
        source_name=Path(filename).name[-_LONGEST_SOURCE_NAME:],
        row_count=inspection.rows,
        statistics=statistics_json(inspection),
        preview=[asdict(row) for row in inspection.preview],
        created_by=actor,
    )
    audit(
        actor=actor,
        action="dataset.create" if created else "dataset.add_version",
        team=team,
        uid=version.uid,
        name=str(version),
        rows=inspection.rows,
    )
    return version


def _dataset_version_revive(known: DatasetVersion, *, actor: User) -> DatasetVersion:
    """The same rows again, after they had been deleted: the version is as good as before.

    :raises DuplicateUpload: if it was never gone.
    """
    if known.artifact.usable:
        raise DuplicateUpload(known)
    artifact_revive(artifact=known.artifact)
    audit(
        actor=actor,
        action="dataset.revive",
        team=known.dataset.team,
        uid=known.uid,
        name=str(known),
    )
    return known


def statistics_json(inspection: Inspection) -> dict[str, Any]:
    """The figures that pages and REST show."""
    figures = inspection.statistics
    return {
        "format": inspection.format,
        "schema": inspection.schema,
        "rows_by_split": dict(figures.rows),
        "duplicates": inspection.duplicates,
        "ignored_columns": list(inspection.ignored_columns),
        "roles": dict(figures.roles),
        "prompt_characters": asdict(figures.prompt),
        "answer_characters": asdict(figures.answer),
        "histogram": list(figures.histogram),
        "warnings": [asdict(warning) for warning in inspection.warnings],
        "characters": figures.characters,
    }

"""Change and delete datasets and models.

A deleted dataset or model frees its name and is hidden. Its versions are deleted as single versions are: their
bytes stay for ``RESTORE_WINDOW``, and restoring one of them restores the dataset or model. The rows stay, because
jobs and evaluations refer to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db import IntegrityError, transaction

from apps.accounts.models import Team, User
from apps.accounts.services import record_audit_entry
from apps.models.models import (
    Artifact,
    Dataset,
    DatasetVersion,
    ModelLine,
    ModelVersion,
)
from apps.models.selectors.storage import deletion_blockers_by_artifact
from apps.models.services.artifact_storage import (
    DeletionRefused,
    enforce_storage_quota,
    lock_for_removal,
    locked_artifact_delete,
)
from controlplane.domain.common.reasons import FieldRefused, Reason
from controlplane.domain.registry.versions import ModelState
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction

Row = TypeVar("Row", Dataset, ModelLine)


class ChangeRefused(FieldRefused):
    """The change conflicts with another object; the message says with which."""


@transaction.atomic
def dataset_change(
    *, dataset: Dataset, actor: User, name: str | None = None, description: str | None = None
) -> Dataset:
    """Rename or describe a dataset; None leaves a value as it is.

    :raises ChangeRefused: if the team has another dataset with that name.
    """
    row = _lock_row(dataset)
    wanted = {"name": name, "description": description}
    changes = _apply_changes(
        row, {key: value for key, value in wanted.items() if value is not None}
    )
    if changes:
        record_audit_entry(row, actor=actor, action="dataset.change", changes=changes)
    return row


@transaction.atomic
def dataset_delete(*, dataset: Dataset, actor: User, at: datetime) -> None:
    """Delete a dataset with its versions.

    :raises DeletionRefused: if something depends on a version, naming all of what does.
    """
    _delete_with_versions(_lock_row(dataset), action="dataset.delete", actor=actor, at=at)


@transaction.atomic
def model_change(
    *,
    line: ModelLine,
    actor: User,
    name: str | None = None,
    description: str | None = None,
    owner: tuple[Team | None] | None = None,
    at: datetime,
) -> ModelLine:
    """Rename, describe, share or assign a model; None leaves a value as it is.

    :param owner: a tuple with the team that owns it from now on, or with None: it is shared with every team. The
        new team is charged for its versions; a shared model stays charged to the earlier one.
    :raises ChangeRefused: if the owner has another model with that name, or the model is in use and would be
        invisible to those who use it.
    :raises StorageQuotaExceeded: if the versions exceed the quota of the new team.
    """
    row = _lock_row(line)
    before = row.team
    wanted: dict[str, Any] = {"name": name, "description": description}
    wanted = {key: value for key, value in wanted.items() if value is not None}
    if owner is not None and owner[0] != before:
        if owner[0] is not None:
            _move_versions(row, team=owner[0], at=at)
        wanted["team"] = owner[0]
    changes = _apply_changes(row, wanted)
    if changes:
        record_audit_entry(
            row, actor=actor, action="modelline.change", team=row.team or before, changes=changes
        )
    return row


@transaction.atomic
def model_delete(*, line: ModelLine, actor: User, at: datetime) -> None:
    """Delete a model with its versions.

    :raises DeletionRefused: if something depends on a version, or an import is in progress, naming all of that.
    """
    _delete_with_versions(_lock_row(line), action="modelline.delete", actor=actor, at=at)


def _delete_with_versions(
    row: Dataset | ModelLine, *, action: str, actor: User, at: datetime
) -> None:
    versions: list[Any] = list(row.versions.select_related("artifact").order_by("number"))
    artifacts = _lock_artifacts(versions)
    reasons: list[str] = [
        Reason(
            "registry.deletion.import_in_progress",
            "the import of {version} is in progress; cancel it first",
            version=str(version),
        )
        for version in versions
        if isinstance(version, ModelVersion) and version.state == ModelState.IMPORTING
    ]
    if reasons := [*reasons, *_blocking_reasons(versions, artifacts, at=at)]:
        raise DeletionRefused(row.name, reasons)
    for artifact in artifacts.values():
        locked_artifact_delete(artifact, actor=actor, at=at)
    type(row)._default_manager.filter(pk=row.pk).update(deleted_at=at)
    record_audit_entry(row, actor=actor, action=action, versions=len(versions))


def _lock_row(row: Row) -> Row:
    """The row, locked also against new versions.

    :raises DeletionRefused: if it was deleted concurrently.
    """
    lock_in_transaction(AdvisoryLock.NUMBER_VERSION, row.pk)
    rows = type(row)._default_manager.select_for_update(no_key=True, of=("self",))
    current = rows.select_related("team").get(pk=row.pk)
    if current.deleted_at is not None:
        raise DeletionRefused(
            row.name, [Reason("registry.deletion.already_deleted", "the object is deleted already")]
        )
    return current


def _apply_changes(row: Dataset | ModelLine, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Write the values that differ; return ``{field: [before, after]}``.

    :raises ChangeRefused: if the name is in use.
    """
    changes = {}
    for key, value in wanted.items():
        before = getattr(row, key)
        if before != value:
            changes[key] = [_auditable(before), _auditable(value)]
            setattr(row, key, value)
    if not changes:
        return {}
    try:
        with transaction.atomic():
            row.save(update_fields=list(changes))
    except IntegrityError:
        raise ChangeRefused(
            "registry.name.in_use",
            "the name {name} is already in use; choose another name",
            name=row.name,
            field="name",
        ) from None
    return changes


def _auditable(value: Any) -> Any:
    return value.slug if isinstance(value, Team) else value


def _lock_artifacts(
    versions: Sequence[DatasetVersion] | Sequence[ModelVersion],
) -> dict[int, Artifact]:
    stored = (version.artifact for version in versions if version.artifact is not None)
    return {artifact.pk: lock_for_removal(artifact) for artifact in stored}


def _blocking_reasons(
    versions: Sequence[DatasetVersion] | Sequence[ModelVersion],
    artifacts: Mapping[int, Artifact],
    *,
    at: datetime,
) -> list[str]:
    usable = [artifact for artifact in artifacts.values() if artifact.usable]
    blockers = deletion_blockers_by_artifact(usable, at=at)
    return [
        Reason(
            "registry.deletion.version_in_use",
            "{version}: {reason}",
            version=str(version),
            reason=reason,
        )
        for version in versions
        for reason in blockers.get(version.artifact_id or 0, ())
    ]


def _move_versions(line: ModelLine, *, team: Team, at: datetime) -> None:
    """Charge another team for the versions of a model.

    :raises ChangeRefused: if jobs, deployments or pipelines use one of them: their teams would no longer see it.
    """
    versions = list(line.versions.select_related("artifact").order_by("number"))
    artifacts = _lock_artifacts(versions)
    reasons = _blocking_reasons(versions, artifacts, at=at)
    if reasons:
        raise ChangeRefused(
            "registry.team.model_in_use",
            "the team of {name} cannot be changed while it is in use: {reasons}",
            name=line.name,
            reasons=reasons,
            field="team",
        )
    moved = [one for one in artifacts.values() if one.team_id != team.pk]
    stored = [one for one in moved if one.removed_at is None]
    enforce_storage_quota(team=team, size=sum(one.size for one in stored))
    Artifact.objects.filter(pk__in=[one.pk for one in moved]).update(team=team)

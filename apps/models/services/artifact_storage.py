"""Artifacts: creation, pinning, deletion and restoration; storage quotas and retention rules."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import IO, Any, BinaryIO

from django.db import IntegrityError, transaction

from apps.accounts.models import Team, User
from apps.accounts.services import record_audit_entry
from apps.models import selectors
from apps.models.models import (
    Artifact,
    ArtifactKind,
    Dataset,
    DatasetVersion,
    ModelLine,
    ModelVersion,
    ModelVersionTransition,
    RetentionRule,
    StorageQuota,
    files_json,
)
from apps.models.selectors.storage import (
    RESTORE_WINDOW,
    artifact_title,
    deletion_blockers,
    storage_usage_of_team,
)
from apps.models.selectors.storage_consumers import storage_consumers
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.domain.common.resources import format_bytes
from controlplane.domain.registry.versions import MODEL, ModelEvent
from controlplane.domain.storage.team_storage import (
    RetentionItem,
    RetentionRules,
    StorageQuotaExceeded,
    StorageQuotaLevel,
)
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.state_transitions import apply_transition

File = tuple[str, str, int]
"""Path, digest, size in bytes."""

_CHUNK = 1 << 20


class RegistrationRefused(ReasonedError):
    """The output or upload cannot be registered; the message says why."""


@transaction.atomic
def artifact_create(
    *, team: Team | None, kind: ArtifactKind, files: Sequence[File], created_by: str | None = None
) -> Artifact:
    """Create a row for blobs that are in the store. ``created_by`` is unique: one artifact per creator.

    Outputs of jobs are stored even if they exceed the quota, so that finished work is not lost.

    :raises StorageQuotaExceeded: if an upload or import exceeds the team's quota.
    """
    size = sum(size for _, _, size in files)
    if created_by is None:
        enforce_storage_quota(team=team, size=size)
    return Artifact.objects.create(
        team=team,
        kind=kind,
        files=files_json(list(files)),
        size=size,
        created_by=created_by,
    )


def code_upload(*, actor: User, team: Team, stream: BinaryIO, filename: str) -> Artifact:
    """Store the archive of a script job unchanged.

    :raises RegistrationRefused: if the runtime cannot unpack the archive.
    :raises StorageQuotaExceeded: if it exceeds the team's quota.
    """
    name = code_archive_name(filename)
    precheck_storage_quota(team=team, size=_remaining_stream_size(stream))
    blob = selectors.artifact_store().put(read_chunks(stream))
    with transaction.atomic():
        artifact = artifact_create(
            team=team, kind=ArtifactKind.CODE, files=[(name, blob.digest, blob.size)]
        )
        record_audit_entry(artifact, actor=actor, action="code.upload", team=team, name=name)
    return artifact


def _remaining_stream_size(stream: BinaryIO) -> int:
    """Bytes from the current position to the end."""
    here = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(here)
    return end - here


def code_archive_name(filename: str) -> str:
    """The name under which the runtime expects an archive.

    :raises RegistrationRefused: if the runtime cannot unpack it.
    """
    lowered = filename.lower()
    for ending, name in (
        (".tar.gz", "code.tar.gz"),
        (".tgz", "code.tar.gz"),
        (".tar", "code.tar"),
        (".zip", "code.zip"),
    ):
        if lowered.endswith(ending):
            return name
    raise RegistrationRefused(
        "code_archive.format.not_supported",
        "{filename} is not a supported archive; upload .tar.gz, .tar or .zip",
        filename=repr(filename),
    )


def read_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream in chunks of one MiB."""
    while chunk := stream.read(_CHUNK):
        yield chunk


class DeletionRefused(ReasonedError):
    """The artifact or item cannot be deleted; the message says what depends on it."""

    def __init__(self, name: str, reasons: Sequence[str]) -> None:
        super().__init__(
            "artifact.deletion.refused",
            "{name} cannot be deleted: {reasons}",
            name=name,
            reasons=list(reasons),
        )
        self.reasons = tuple(reasons)


def storage_quota_set(*, team: Team, limit: int | None, actor: User) -> None:
    """Set the team's quota in bytes; None removes it.

    Existing artifacts stay even if they exceed it.
    """
    with transaction.atomic():
        before = StorageQuota.objects.filter(team=team).values_list("limit", flat=True).first()
        if limit is None:
            StorageQuota.objects.filter(team=team).delete()
        else:
            StorageQuota.objects.update_or_create(team=team, defaults={"limit": limit})
        record_audit_entry(
            team, actor=actor, action="storage.quota", team=team, before=before, after=limit
        )


def retention_rules_set(*, team: Team | None, rules: RetentionRules | None, actor: User) -> None:
    """Set the retention rules of a team, or the default rules without a team.

    None resets a team to the default rules.
    """
    with transaction.atomic():
        if rules is None:
            RetentionRule.objects.filter(team=team).delete()
        else:
            RetentionRule.objects.update_or_create(team=team, defaults=asdict(rules))
        record_audit_entry(
            actor=actor,
            action="storage.rules",
            team=team,
            uid=team.uid if team else "",
            name=team.name if team else "every other team",
            after=asdict(rules) if rules else None,
        )


@transaction.atomic
def artifact_pin(*, artifact: Artifact, actor: User, at: datetime) -> None:
    """Exclude the artifact from retention rules and from deletion until it is unpinned."""
    row = lock_for_removal(artifact)
    if not row.usable:
        raise DeletionRefused(
            artifact_title(row), ["its bytes are deleted, so it cannot be pinned"]
        )
    Artifact.objects.filter(pk=row.pk).update(pinned_at=at)
    _audit_artifact(row, actor=actor, action="storage.pin")


@transaction.atomic
def artifact_unpin(*, artifact: Artifact, actor: User) -> None:
    row = lock_for_removal(artifact)
    Artifact.objects.filter(pk=row.pk).update(pinned_at=None)
    _audit_artifact(row, actor=actor, action="storage.unpin")


@transaction.atomic
def artifact_delete(*, artifact: Artifact, actor: User, at: datetime) -> None:
    """Delete the artifact; its bytes are removed after ``RESTORE_WINDOW``, until then it can be restored.

    :raises DeletionRefused: if something depends on it, or it is already deleted.
    """
    row = lock_for_removal(artifact)
    if not row.usable:
        raise DeletionRefused(artifact_title(row), ["it is deleted already"])
    if reasons := deletion_blockers(row, at=at):
        raise DeletionRefused(artifact_title(row), reasons)
    locked_artifact_delete(row, actor=actor, at=at)


def locked_artifact_delete(row: Artifact, *, actor: User, at: datetime) -> None:
    """Delete an artifact whose lock the caller holds, after having checked that nothing depends on it.

    One that is deleted already stays as it is.
    """
    if not row.usable:
        return
    reason = Reason("transition.by_user.deleted", "deleted by {user}", user=actor.username)
    _update_artifact(row, deleted_at=at, deleted_by=actor.username, deletion_reason=reason)
    _transition_model_version(row, ModelEvent.DELETE, at=at, reason=reason, actor=actor.username)
    _audit_artifact(
        row, actor=actor, action="storage.delete", undo_until=(at + RESTORE_WINDOW).isoformat()
    )


@transaction.atomic
def artifact_restore(*, artifact: Artifact, actor: User, at: datetime) -> None:
    """Restore a deleted artifact.

    :raises DeletionRefused: if it is not deleted, or its bytes have been removed.
    """
    row = lock_for_removal(artifact)
    if row.deleted_at is None or row.removed_at is not None:
        raise DeletionRefused(artifact_title(row), ["there is nothing to have back"])
    _restore_owner(row)
    _update_artifact(row, deleted_at=None, deleted_by="", deletion_reason="")
    _transition_model_version(
        row,
        ModelEvent.RESTORE,
        at=at,
        reason=Reason("transition.by_user.restored", "restored by {user}", user=actor.username),
        actor=actor.username,
    )
    _audit_artifact(row, actor=actor, action="storage.restore")


def _restore_owner(artifact: Artifact) -> None:
    """Restore the deleted dataset or model of a version.

    :raises DeletionRefused: if another one has its name now.
    """
    models: tuple[type[Dataset] | type[ModelLine], ...] = (Dataset, ModelLine)
    for model in models:
        owner = model._default_manager.filter(versions__artifact=artifact).first()
        if owner is None or owner.deleted_at is None:
            continue
        # A savepoint: the refusal must not end the transaction of the caller.
        try:
            with transaction.atomic():
                model._default_manager.filter(pk=owner.pk).update(deleted_at=None)
        except IntegrityError:
            raise DeletionRefused(
                artifact_title(artifact),
                [
                    Reason(
                        "artifact.restore.name_taken",
                        "another object is named {name} now; rename that one first",
                        name=owner.name,
                    )
                ],
            ) from None


@transaction.atomic
def artifact_remove_now(*, artifact: Artifact, actor: User, at: datetime) -> None:
    """Remove a deleted artifact's bytes before the restore window ends.

    :raises DeletionRefused: if it has not been deleted before, or something depends on it.
    """
    row = lock_for_removal(artifact)
    if row.deleted_at is None or row.removed_at is not None:
        raise DeletionRefused(artifact_title(row), ["delete it first"])
    if reasons := deletion_blockers(row, at=at):
        raise DeletionRefused(artifact_title(row), reasons)
    artifact_bytes_remove(
        row,
        at=at,
        reason=Reason("transition.by_user.removed", "removed by {user}", user=actor.username),
        by=actor.username,
    )
    _audit_artifact(row, actor=actor, action="storage.remove")


@transaction.atomic
def artifact_bytes_remove(artifact: Artifact, *, at: datetime, reason: str, by: str) -> None:
    """Release the bytes of the row. The caller holds its lock and has checked that nothing requires them."""
    _update_artifact(
        artifact,
        removed_at=at,
        deleted_at=artifact.deleted_at or at,
        deleted_by=artifact.deleted_by or by,
        deletion_reason=reason,
    )
    _transition_model_version(artifact, ModelEvent.REMOVE, at=at, reason=reason, actor=by)


@transaction.atomic
def artifact_restore_on_reupload(*, artifact: Artifact) -> None:
    """Restore the artifact because the same bytes have been stored again.

    :raises StorageQuotaExceeded: if they exceed the quota.
    """
    row = lock_for_removal(artifact)
    if row.removed_at is not None:
        enforce_storage_quota(team=row.team, size=row.size)
    _update_artifact(row, deleted_at=None, deleted_by="", deletion_reason="", removed_at=None)


def lock_for_removal(artifact: Artifact) -> Artifact:
    """Lock the row together with its version and return its current state.

    Transactions that add a reference to the version wait; references added before are visible afterwards.
    """
    for model in (ModelVersion, DatasetVersion):
        # FOR UPDATE: inserting a foreign key takes FOR KEY SHARE, which waits for this lock only.
        list(model._default_manager.select_for_update().filter(artifact=artifact).values("pk"))
    return Artifact.objects.select_for_update().get(pk=artifact.pk)


def _update_artifact(artifact: Artifact, **values: object) -> None:
    Artifact.objects.filter(pk=artifact.pk).update(**values)
    for name, value in values.items():
        setattr(artifact, name, value)


def _transition_model_version(
    artifact: Artifact, event: ModelEvent, *, at: datetime, reason: str, actor: str
) -> None:
    version = ModelVersion.objects.filter(artifact=artifact).first()
    if version is not None:
        apply_transition(
            version, MODEL, event, into=ModelVersionTransition, at=at, reason=reason, actor=actor
        )


def _audit_artifact(artifact: Artifact, *, actor: User, action: str, **detail: Any) -> None:
    record_audit_entry(
        artifact,
        actor=actor,
        action=action,
        name=artifact_title(artifact),
        size=format_bytes(artifact.size),
        **detail,
    )


def attempt_item_delete(*, item: RetentionItem, actor: User, at: datetime) -> None:
    """Remove an item of an attempt at once and permanently.

    :raises DeletionRefused: if its job still needs it, or it has been removed.
    """
    if item.held:
        raise DeletionRefused(item.name, [item.held])
    with transaction.atomic():
        record_audit_entry(
            actor=actor,
            action="storage.remove",
            team=Team.objects.filter(uid=item.team).first(),
            uid=item.uid,
            name=item.name,
            kind=item.kind.value,
            size=format_bytes(item.size),
        )
        if not any(consumer.remove(item, at=at) for consumer in storage_consumers()):
            raise DeletionRefused(item.name, ["it is gone already, or its job has come to need it"])


def precheck_storage_quota(*, team: Team | None, size: int) -> None:
    """Refuse early, before bytes are written; :func:`enforce_storage_quota` is authoritative.

    :raises StorageQuotaExceeded: if that many additional bytes exceed the quota.
    """
    if team is None:
        return
    use = storage_usage_of_team(team)
    if not use.fits(size):
        raise StorageQuotaExceeded(team=team.name, use=use, requested=size)


def enforce_storage_quota(*, team: Team | None, size: int) -> None:
    """Check the quota under a lock. The caller adds the row in the same transaction.

    Transactions that charge the same team are serialised, so that two uploads cannot both use the last bytes.

    :raises StorageQuotaExceeded: if the bytes exceed the quota.
    """
    if team is None:
        return
    lock_in_transaction(AdvisoryLock.CHARGE_STORAGE, team.pk)
    precheck_storage_quota(team=team, size=size)


def check_storage_quota_not_exhausted(*, team: Team) -> None:
    """Check the quota for a job whose output size is unknown.

    Outputs of jobs are always stored; a team that exceeds its quota because of them can start no further job.

    :raises StorageQuotaExceeded: if the quota is used up.
    """
    use = storage_usage_of_team(team)
    if use.level is StorageQuotaLevel.FULL:
        raise StorageQuotaExceeded(team=team.name, use=use, requested=None)

"""What people do about storage: quotas and rules, pin, delete, have back, remove for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from django.db import transaction

from apps.accounts.models import Team, User
from apps.accounts.services import audit
from apps.models.models import (
    Artifact,
    DatasetVersion,
    ModelVersion,
    ModelVersionTransition,
    RetentionRule,
    StorageQuota,
)
from apps.models.selectors.sources import sources
from apps.models.selectors.storage import UNDO_WITHIN, obstacles, title_of
from apps.models.services.storage_charges import storage_charge
from controlplane.domain.common.resources import format_bytes
from controlplane.domain.models import MODEL, ModelEvent
from controlplane.domain.storage.retention import RetentionItem, RetentionRules
from controlplane.persistence.state_transitions import apply_transition


class DeletionRefused(Exception):
    """Something still depends on it; the message says what."""

    def __init__(self, name: str, reasons: Sequence[str]) -> None:
        super().__init__(f"{name} cannot be deleted: {'; '.join(reasons)}")
        self.reasons = tuple(reasons)


def quota_set(*, team: Team, limit: int | None, actor: User) -> None:
    """How many bytes the team may store from now on; None lifts the limit.

    What is there already stays, even if it is more.
    """
    with transaction.atomic():
        before = StorageQuota.objects.filter(team=team).values_list("limit", flat=True).first()
        if limit is None:
            StorageQuota.objects.filter(team=team).delete()
        else:
            StorageQuota.objects.update_or_create(team=team, defaults={"limit": limit})
        audit(
            actor=actor,
            action="storage.quota",
            team=team,
            uid=team.uid,
            name=team.name,
            before=before,
            after=limit,
        )


def rules_set(*, team: Team | None, rules: RetentionRules | None, actor: User) -> None:
    """What is kept of the team's from now on; no team means all that have no rules of their own.

    None gives a team the rules that everybody else has.
    """
    with transaction.atomic():
        if rules is None:
            RetentionRule.objects.filter(team=team).delete()
        else:
            RetentionRule.objects.update_or_create(team=team, defaults=asdict(rules))
        audit(
            actor=actor,
            action="storage.rules",
            team=team,
            uid=team.uid if team else "",
            name=team.name if team else "every other team",
            after=asdict(rules) if rules else None,
        )


@transaction.atomic
def artifact_pin(*, artifact: Artifact, actor: User, at: datetime) -> None:
    """No rule removes it from now on, and nobody deletes it before it is unpinned."""
    row = _locked(artifact)
    if not row.usable:
        raise DeletionRefused(title_of(row), ["its bytes are deleted, so it cannot be pinned"])
    Artifact.objects.filter(pk=row.pk).update(pinned_at=at)
    _note(row, actor=actor, action="storage.pin")


@transaction.atomic
def artifact_unpin(*, artifact: Artifact, actor: User) -> None:
    row = _locked(artifact)
    Artifact.objects.filter(pk=row.pk).update(pinned_at=None)
    _note(row, actor=actor, action="storage.unpin")


@transaction.atomic
def artifact_delete(*, artifact: Artifact, actor: User, at: datetime) -> None:
    """Nobody can use it any more; its bytes go after ``UNDO_WITHIN``, until then it can be had back.

    :raises DeletionRefused: if something depends on it, or it is deleted already.
    """
    row = _locked(artifact)
    if not row.usable:
        raise DeletionRefused(title_of(row), ["it is deleted already"])
    if reasons := obstacles(row, at=at):
        raise DeletionRefused(title_of(row), reasons)
    reason = f"deleted by {actor.username}"
    _write(row, deleted_at=at, deleted_by=actor.username, deletion_reason=reason)
    _move_version(row, ModelEvent.DELETE, at=at, reason=reason, actor=actor.username)
    _note(row, actor=actor, action="storage.delete", undo_until=(at + UNDO_WITHIN).isoformat())


@transaction.atomic
def artifact_restore(*, artifact: Artifact, actor: User, at: datetime) -> None:
    """Have it back.

    :raises DeletionRefused: if it is not deleted, or its bytes are gone already.
    """
    row = _locked(artifact)
    if row.deleted_at is None or row.removed_at is not None:
        raise DeletionRefused(title_of(row), ["there is nothing to have back"])
    _write(row, deleted_at=None, deleted_by="", deletion_reason="")
    _move_version(
        row,
        ModelEvent.RESTORE,
        at=at,
        reason=f"had back by {actor.username}",
        actor=actor.username,
    )
    _note(row, actor=actor, action="storage.restore")


@transaction.atomic
def artifact_remove_now(*, artifact: Artifact, actor: User, at: datetime) -> None:
    """Do not wait with a deleted one: its bytes are no longer charged, and nobody can have it back.

    :raises DeletionRefused: if it has not been deleted before, or something has come to depend on it.
    """
    row = _locked(artifact)
    if row.deleted_at is None or row.removed_at is not None:
        raise DeletionRefused(title_of(row), ["delete it first"])
    if reasons := obstacles(row, at=at):
        raise DeletionRefused(title_of(row), reasons)
    artifact_remove(row, at=at, reason=f"removed by {actor.username}", by=actor.username)
    _note(row, actor=actor, action="storage.remove")


@transaction.atomic
def artifact_remove(artifact: Artifact, *, at: datetime, reason: str, by: str) -> None:
    """The row gives up its bytes. The caller holds it locked and knows that nothing needs them."""
    _write(
        artifact,
        removed_at=at,
        deleted_at=artifact.deleted_at or at,
        deleted_by=artifact.deleted_by or by,
        deletion_reason=reason,
    )
    _move_version(artifact, ModelEvent.REMOVE, at=at, reason=reason, actor=by)


@transaction.atomic
def artifact_revive(*, artifact: Artifact) -> None:
    """The same bytes have been stored again: the artifact is as good as before.

    :raises StorageQuotaExceeded: if they do not fit any more.
    """
    row = _locked(artifact)
    if row.removed_at is not None:
        storage_charge(team=row.team, size=row.size)
    _write(row, deleted_at=None, deleted_by="", deletion_reason="", removed_at=None)


def lock_for_removal(artifact: Artifact) -> Artifact:
    """The row as it is now, locked together with its version.

    Whoever adds a row that refers to the version waits, and whoever did before is visible afterwards.
    """
    for model in (ModelVersion, DatasetVersion):
        # The full lock: a foreign key to the row takes the weakest one, which waits for this only.
        list(model._default_manager.select_for_update().filter(artifact=artifact).values("pk"))
    return Artifact.objects.select_for_update().get(pk=artifact.pk)


def _locked(artifact: Artifact) -> Artifact:
    return lock_for_removal(artifact)


def _write(artifact: Artifact, **values: object) -> None:
    Artifact.objects.filter(pk=artifact.pk).update(**values)
    for name, value in values.items():
        setattr(artifact, name, value)


def _move_version(
    artifact: Artifact, event: ModelEvent, *, at: datetime, reason: str, actor: str
) -> None:
    version = ModelVersion.objects.filter(artifact=artifact).first()
    if version is not None:
        apply_transition(
            version, MODEL, event, into=ModelVersionTransition, at=at, reason=reason, actor=actor
        )


def _note(artifact: Artifact, *, actor: User, action: str, **detail: object) -> None:
    audit(
        actor=actor,
        action=action,
        team=artifact.team,
        uid=artifact.uid,
        name=title_of(artifact),
        size=format_bytes(artifact.size),
        **detail,
    )


def item_delete(*, item: RetentionItem, actor: User, at: datetime) -> None:
    """Remove what an attempt left, at once and for good.

    :raises DeletionRefused: if its job still needs it, or it is gone.
    """
    if item.held:
        raise DeletionRefused(item.name, [item.held])
    with transaction.atomic():
        audit(
            actor=actor,
            action="storage.remove",
            team=Team.objects.filter(uid=item.team).first(),
            uid=item.uid,
            name=item.name,
            kind=item.kind.value,
            size=format_bytes(item.size),
        )
        if not any(source.remove(item, at=at) for source in sources()):
            raise DeletionRefused(item.name, ["it is gone already, or its job has come to need it"])

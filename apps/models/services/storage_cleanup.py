"""Garbage collection of blobs, and retention of versions and attempt items.

Garbage collection removes blobs that no row references, in two steps::

    unreferenced and older than the grace period ──▶ set aside ──a second grace period later──▶ discarded
                                                        └── stored, read or referenced again ──▶ restored

A blob is stored before the row that references it, so a young blob may be unreferenced. Storing or reading a blob
that is set aside restores it; hence only bytes that nobody has stored, read or referenced for two grace periods
are lost. Each step is one rename or one unlink: a collector that dies leaves nothing half done, and the next run
resumes after the last saved digest.

Retention removes what the rules no longer keep. A pure function plans it; each removal is checked again under a
lock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice

from django.db import transaction
from django.utils import timezone
from typing_extensions import TypedDict

from apps.accounts.models import Team
from apps.accounts.services import record_audit_entry
from apps.models.models import Artifact, ArtifactKind, StorageRun, StorageRunKind, StoreSize
from apps.models.selectors import artifact_store
from apps.models.selectors import storage as selectors
from apps.models.selectors.storage import digests_referenced
from apps.models.selectors.storage_consumers import storage_consumers
from apps.models.services.artifact_storage import artifact_bytes_remove, lock_for_removal
from controlplane.domain.common.reasons import Reason, join_reasons
from controlplane.domain.storage.team_storage import (
    RetentionItem,
    RetentionItemKind,
    RetentionPlan,
    RetentionRemoval,
    RetentionRules,
    plan_retention,
)
from controlplane.persistence.advisory_locks import AdvisoryLock, session_lock
from controlplane.persistence.leases import LeaderLease, hold_leader_lease
from controlplane.ports.artifacts import ArtifactStore, StoredBlob

#: Longer than the time between storing a blob and committing the row that references it.
GARBAGE_GRACE = timedelta(hours=24)
#: Blobs examined per run.
GARBAGE_BATCH = 100_000
#: Blobs between two saves of the cursor.
CURSOR_SAVED_EVERY = 1000


def garbage_collect(
    *,
    at: datetime,
    dry_run: bool = False,
    grace: timedelta = GARBAGE_GRACE,
    limit: int = GARBAGE_BATCH,
) -> StorageRun | None:
    """Collect garbage among at most ``limit`` blobs; a dry run reports without changes.

    None if another run, or a backup, is active: a backup needs every blob that its rows reference.
    """
    with session_lock(AdvisoryLock.COLLECT_GARBAGE) as acquired:
        if not acquired:
            return None
        cursor = "" if dry_run else _last_checked_digest()
        with record_cleanup_run(
            StorageRunKind.GARBAGE, at=at, dry_run=dry_run, cursor=cursor
        ) as run:
            _delete_unreferenced_blobs(run, old=at - grace, limit=limit)
        return run


def _last_checked_digest() -> str:
    """The digest at which the last run stopped."""
    runs = StorageRun.objects.filter(kind=StorageRunKind.GARBAGE, dry_run=False)
    return runs.values_list("cursor", flat=True).first() or ""


def _delete_unreferenced_blobs(run: StorageRun, *, old: datetime, limit: int) -> None:
    store = artifact_store()
    # Half the size of their text, of which there may be millions.
    needed = {_digest_to_bytes(digest) for digest in digests_referenced()}
    if not run.dry_run:
        run.removed_bytes += store.delete_unfinished_writes(before=old)
    blobs = list(islice(store.blobs(after=run.cursor), limit))
    for blob in blobs:
        _delete_unreferenced_blob(
            store, blob, run=run, needed=_digest_to_bytes(blob.digest) in needed, old=old
        )
        run.examined += 1
        if run.examined % CURSOR_SAVED_EVERY == 0 and not run.dry_run:
            run.cursor = blob.digest
            run.save()
    run.cursor = blobs[-1].digest if len(blobs) == limit and not run.dry_run else ""


def _digest_to_bytes(digest: str) -> bytes:
    return bytes.fromhex(digest.removeprefix("sha256:"))


def _delete_unreferenced_blob(
    store: ArtifactStore, blob: StoredBlob, *, run: StorageRun, needed: bool, old: datetime
) -> None:
    if needed:
        if blob.set_aside and not run.dry_run:
            store.bring_back(blob.digest)
        return
    if blob.since > old:
        return
    if blob.set_aside:
        run.removed += 1
        run.removed_bytes += blob.size
        if not run.dry_run:
            store.discard(blob.digest)
        return
    run.set_aside += 1
    if not run.dry_run:
        store.set_aside(blob.digest)


def measure_artifact_storage(*, at: datetime) -> bool:
    """Count the store, and have every storage source measure its own data.

    False if another worker is active: counting a large store takes longer than the interval.
    """
    with session_lock(AdvisoryLock.MEASURE_STORAGE) as acquired:
        if not acquired:
            return False
        count = size = aside = 0
        for blob in artifact_store().blobs():
            count += 1
            size += blob.size
            aside += blob.size if blob.set_aside else 0
        StoreSize.objects.update_or_create(
            pk=1, defaults={"counted_at": at, "blobs": count, "size": size, "set_aside": aside}
        )
        for consumer in storage_consumers():
            consumer.measure(at=at)
        return True


INTERRUPTED = Reason(
    "storage_run.state.interrupted",
    "interrupted; the next run continued from the same position",
)


@contextmanager
def record_cleanup_run(
    kind: StorageRunKind, *, at: datetime, dry_run: bool = False, cursor: str = ""
) -> Iterator[StorageRun]:
    """Record a run, including an error that ends it.

    An unfinished run of the same kind belongs to a dead process, since only one run is active at a time.
    """
    left_open = StorageRun.objects.filter(kind=kind, ended_at=None)
    left_open.update(ended_at=at, error=INTERRUPTED)
    run = StorageRun.objects.create(kind=kind, started_at=at, dry_run=dry_run, cursor=cursor)
    try:
        yield run
    except Exception as error:
        run.error = f"the run failed: {error}"
        _end_run(run)
        raise
    _end_run(run)


def _end_run(run: StorageRun) -> None:
    run.ended_at = timezone.now()
    run.save()


log = logging.getLogger(__name__)

RETENTION_LEASE = "registry.retention"
RETENTION_LEASE_TTL = timedelta(minutes=5)
#: Items removed per run; the rest follows in the next run.
RETENTION_BATCH = 500
#: Removals recorded in the details of one run.
DETAILS_PER_RUN = 50
#: Runs kept in the history.
RUN_RETENTION = 500
#: Actor of removals by rules.
REMOVED_BY_RULE = "retention"


def retention_items(*, at: datetime) -> list[RetentionItem]:
    """Every item that a rule could remove, with its hold."""
    reasons = selectors.retention_holds(at=at)
    return [
        *_model_version_retention_items(reasons),
        *(item for consumer in storage_consumers() for item in consumer.items()),
    ]


def _model_version_retention_items(reasons: dict[int, list[str]]) -> Iterator[RetentionItem]:
    rows = Artifact.objects.filter(
        kind=ArtifactKind.MODEL,
        removed_at=None,
        deleted_at=None,
        modelversion__isnull=False,
    ).select_related("team", "modelversion__line__team", "modelversion__base")
    for artifact in rows.iterator(chunk_size=200):
        version = artifact.modelversion
        owner = version.line.team
        # Avoids a query for the reverse relation.
        version.artifact = artifact
        yield RetentionItem(
            kind=RetentionItemKind.VERSION,
            uid=version.uid,
            name=str(version),
            team=owner.uid if owner else "",
            size=artifact.size,
            at=version.created_at,
            series=version.line.uid,
            number=version.number,
            pinned=artifact.pinned_at is not None,
            held=join_reasons(reasons.get(artifact.pk, ())),
            needs=selectors.versions_required_to_load(version),
        )


def retention_plan(*, at: datetime) -> RetentionPlan:
    """What the next run removes under the current rules."""
    own, default = selectors.retention_rules_by_team()
    return plan_retention(retention_items(at=at), rules=own, default=default, at=at)


def retention_preview(*, team: Team | None, rules: RetentionRules, at: datetime) -> RetentionPlan:
    """What a run would remove of that team, or of all teams without rules, under the given rules."""
    own, default = selectors.retention_rules_by_team()
    if team is None:
        default = rules
    else:
        own[team.uid] = rules
    found = plan_retention(retention_items(at=at), rules=own, default=default, at=at)

    def concerned(item: RetentionItem) -> bool:
        return item.team not in own if team is None else item.team == team.uid

    return found.restricted(concerned)


def run_retention(*, at: datetime) -> StorageRun | None:
    """Run retention: remove expired deleted artifacts, then what the rules do not keep.

    None if another worker is active.
    """
    with hold_leader_lease(RETENTION_LEASE, ttl=RETENTION_LEASE_TTL) as lease:
        if lease is None:
            return None
        with record_cleanup_run(StorageRunKind.RETENTION, at=at) as run:
            run.removed, run.removed_bytes = _remove_expired(at=at)
            found = retention_plan(at=at)
            run.examined = len(found.removals) + len(found.spared)
            for removal in _removals_while_leased(found, lease):
                if apply_retention_removal(removal, at=at):
                    _record_removal(run, removal)
        _delete_old_runs()
        return run


def _removals_while_leased(found: RetentionPlan, lease: LeaderLease) -> Iterator[RetentionRemoval]:
    for removal in found.removals[:RETENTION_BATCH]:
        if not lease.renew(ttl=RETENTION_LEASE_TTL):
            log.warning("a round of retention took too long and was cut off")
            return
        yield removal


class RetentionRemovalRecord(TypedDict):
    """What a retention run removed, in its details."""

    kind: str
    name: str
    #: In bytes.
    size: int
    reason: str


def _record_removal(run: StorageRun, removal: RetentionRemoval) -> None:
    run.removed += 1
    run.removed_bytes += removal.item.size
    if len(run.details) < DETAILS_PER_RUN:
        line: RetentionRemovalRecord = {
            "kind": removal.item.kind.value,
            "name": removal.item.name,
            "size": removal.item.size,
            "reason": removal.reason,
        }
        run.details.append(line)


def _remove_expired(*, at: datetime) -> tuple[int, int]:
    """Remove the bytes of deleted artifacts after the restore window; return count and bytes."""
    count = size = 0
    for artifact in list(selectors.artifacts_past_restore_window(at=at)[:RETENTION_BATCH]):
        with transaction.atomic():
            row = lock_for_removal(artifact)
            if row.deleted_at is None or row.removed_at is not None:
                continue
            if selectors.deletion_blockers(row, at=at):
                # It came into use just before it was deleted; a later run removes it.
                continue
            artifact_bytes_remove(row, at=at, reason=row.deletion_reason, by=row.deleted_by)
        count, size = count + 1, size + row.size
    return count, size


def apply_retention_removal(removal: RetentionRemoval, *, at: datetime) -> bool:
    """Remove the item unless it has come into use since the plan; return whether it was removed."""
    item = removal.item
    if item.kind is RetentionItemKind.VERSION:
        return _remove_version(removal, at=at)
    removed = any(consumer.remove(item, at=at) for consumer in storage_consumers())
    if removed:
        log.info("bytes were removed by rule", extra={"kind": item.kind.value, "uid": item.uid})
    return removed


@transaction.atomic
def _remove_version(removal: RetentionRemoval, *, at: datetime) -> bool:
    artifact = Artifact.objects.filter(modelversion__uid=removal.item.uid).first()
    if artifact is None:
        return False
    row = lock_for_removal(artifact)
    if not row.usable or selectors.deletion_blockers(row, at=at, by_rule=True):
        return False
    artifact_bytes_remove(
        row,
        at=at,
        reason=Reason(
            "artifact.removal.retention_rule",
            "removed by a retention rule: {reason}",
            reason=removal.reason,
        ),
        by=REMOVED_BY_RULE,
    )
    record_audit_entry(
        row, actor=None, action="storage.retention", name=removal.item.name, rule=removal.rule.value
    )
    return True


def _delete_old_runs() -> None:
    edge = StorageRun.objects.order_by("-id").values_list("id", flat=True)[
        RUN_RETENTION : RUN_RETENTION + 1
    ]
    for pk in edge:
        StorageRun.objects.filter(id__lte=pk).delete()

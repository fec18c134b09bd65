"""Garbage collection: blobs that no row names any more leave the disk, in two steps.

::

    named by no row, and older than the grace ──▶ set aside ──a grace later, still named by none──▶ discarded
                                                     └── stored, read or named again ──▶ brought back

A blob is stored before the row that names it is written, so "no row names it" means nothing while it is
young. Whoever stores or reads a blob that is set aside brings it back; hence only bytes that nobody has
stored, read or named for two graces are lost. Each step is one rename or one unlink: a collector that dies
leaves nothing half done, and the next one goes on behind the last digest that it noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

from django.utils import timezone

from apps.models.models import StorageRun, StoreSize
from apps.models.selectors import artifact_store
from apps.models.selectors.sources import sources
from apps.models.selectors.storage import digests_referenced
from controlplane.persistence.locks import AdvisoryLock, lock_of_session
from controlplane.ports.artifacts import ArtifactStore, HeldBlob

#: Longer than anything takes from the first byte stored to the row that names it.
GRACE = timedelta(hours=24)
#: Blobs looked at in one round.
BATCH = 100_000
#: How often a round notes where it is.
NOTE_EVERY = 1000


def garbage_collect(
    *, at: datetime, dry_run: bool = False, grace: timedelta = GRACE, limit: int = BATCH
) -> StorageRun | None:
    """One round over at most ``limit`` blobs; a dry run says what it would do and does nothing.

    None if another round, or a backup, is under way: a backup needs every blob that its rows name.
    """
    with lock_of_session(AdvisoryLock.COLLECT_GARBAGE) as held:
        if not held:
            return None
        store = artifact_store()
        run = _begin(at=at, dry_run=dry_run)
        needed = _needed()
        if not dry_run:
            run.removed_bytes += store.clear_unfinished(before=at - grace)
        blobs = list(islice(store.blobs(after=run.cursor), limit))
        for blob in blobs:
            _judge(store, blob, run=run, needed=_key(blob.digest) in needed, old=at - grace)
            run.examined += 1
            if run.examined % NOTE_EVERY == 0 and not dry_run:
                run.cursor = blob.digest
                run.save()
        run.cursor = blobs[-1].digest if len(blobs) == limit and not dry_run else ""
        run.ended_at = timezone.now()
        run.save()
        return run


def _begin(*, at: datetime, dry_run: bool) -> StorageRun:
    """A new round, from where the last one stopped."""
    last = StorageRun.objects.filter(kind=StorageRun.Kind.GARBAGE, dry_run=False).first()
    if last is not None and last.ended_at is None:
        last.ended_at, last.error = at, "it was cut off; the next round went on where it was"
        last.save(update_fields=["ended_at", "error"])
    return StorageRun.objects.create(
        kind=StorageRun.Kind.GARBAGE,
        dry_run=dry_run,
        started_at=at,
        cursor=last.cursor if last is not None and not dry_run else "",
    )


def _needed() -> set[bytes]:
    """What rows name. Half the size of the digests' text, of which there may be millions."""
    return {_key(digest) for digest in digests_referenced()}


def _key(digest: str) -> bytes:
    return bytes.fromhex(digest.removeprefix("sha256:"))


def _judge(
    store: ArtifactStore, blob: HeldBlob, *, run: StorageRun, needed: bool, old: datetime
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


def storage_measure(*, at: datetime) -> None:
    """Count the store, and have every app measure what only its place can tell."""
    count = size = aside = 0
    for blob in _blobs():
        count += 1
        size += blob.size
        aside += blob.size if blob.set_aside else 0
    StoreSize.objects.update_or_create(
        pk=1, defaults={"counted_at": at, "blobs": count, "size": size, "set_aside": aside}
    )
    for source in sources():
        source.measure(at=at)


def _blobs() -> Iterator[HeldBlob]:
    return artifact_store().blobs()

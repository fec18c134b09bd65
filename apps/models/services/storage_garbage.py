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

from datetime import datetime, timedelta
from itertools import islice

from apps.models.models import StorageRun, StoreSize
from apps.models.selectors import artifact_store
from apps.models.selectors.sources import sources
from apps.models.selectors.storage import digests_referenced
from apps.models.services.storage_runs import storage_run
from controlplane.persistence.locks import AdvisoryLock, session_lock
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
    with session_lock(AdvisoryLock.COLLECT_GARBAGE) as held:
        if not held:
            return None
        cursor = "" if dry_run else _cursor()
        with storage_run(StorageRun.Kind.GARBAGE, at=at, dry_run=dry_run, cursor=cursor) as run:
            _collect(run, old=at - grace, limit=limit)
        return run


def _cursor() -> str:
    """Where the last round stopped."""
    rounds = StorageRun.objects.filter(kind=StorageRun.Kind.GARBAGE, dry_run=False)
    return rounds.values_list("cursor", flat=True).first() or ""


def _collect(run: StorageRun, *, old: datetime, limit: int) -> None:
    store = artifact_store()
    needed = _needed()
    if not run.dry_run:
        run.removed_bytes += store.clear_unfinished(before=old)
    blobs = list(islice(store.blobs(after=run.cursor), limit))
    for blob in blobs:
        _judge(store, blob, run=run, needed=_key(blob.digest) in needed, old=old)
        run.examined += 1
        if run.examined % NOTE_EVERY == 0 and not run.dry_run:
            run.cursor = blob.digest
            run.save()
    run.cursor = blobs[-1].digest if len(blobs) == limit and not run.dry_run else ""


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


def storage_measure(*, at: datetime) -> bool:
    """Count the store, and have every app measure what only its place can tell.

    False if another worker is still at it: a large store takes longer than it is until the next turn.
    """
    with session_lock(AdvisoryLock.MEASURE_STORAGE) as held:
        if not held:
            return False
        count = size = aside = 0
        for blob in artifact_store().blobs():
            count += 1
            size += blob.size
            aside += blob.size if blob.set_aside else 0
        StoreSize.objects.update_or_create(
            pk=1, defaults={"counted_at": at, "blobs": count, "size": size, "set_aside": aside}
        )
        for source in sources():
            source.measure(at=at)
        return True

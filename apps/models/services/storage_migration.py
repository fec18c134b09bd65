"""Copy the blobs of one artifact store into another, such as from the folder to a bucket.

A blob that is in the target with its size is not copied again, so a copy that was interrupted goes on, and a
second run after the product was stopped copies only what is new. The target verifies the digest of every blob
before it is visible there. Blobs of the source that are set aside are copied only if a row refers to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from apps.models.selectors.storage import digests_referenced
from apps.models.services.artifact_storage import read_chunks
from controlplane.domain.common.reasons import ReasonedError
from controlplane.persistence.advisory_locks import AdvisoryLock, session_lock
from controlplane.ports.artifacts import ArtifactError, ArtifactStore, StorageUnavailable


class MigrationBusy(ReasonedError):
    """Garbage collection, a backup or another migration is active."""


@dataclass(slots=True, kw_only=True)
class MigrationResult:
    """What was done, or in a dry run would be."""

    copied: int = 0
    copied_bytes: int = 0
    #: In the target already.
    present: int = 0
    #: Digests that rows refer to and the source does not have.
    missing: list[str]


def artifacts_migrate(
    *,
    source: ArtifactStore,
    target: ArtifactStore,
    dry_run: bool = False,
    verify: bool = False,
    workers: int = 4,
    report: Callable[[MigrationResult], None] = lambda _: None,
) -> MigrationResult:
    """Copy every blob that the target does not have; nothing of the source is deleted.

    :param verify: read the blobs that are in the target already, and copy those again whose bytes are damaged.
    :param workers: blobs that are copied at the same time.
    :param report: called after each blob.
    :raises MigrationBusy: if garbage collection, a backup or another migration is active.
    :raises ArtifactError: if a blob of the source is damaged, or a store does not answer.
    """
    with session_lock(AdvisoryLock.COLLECT_GARBAGE) as acquired:
        if not acquired:
            raise MigrationBusy(
                "artifact.migration.busy",
                "garbage collection, a backup or another migration is active; try again when "
                "it has ended",
            )
        return _migrate(
            source, target, dry_run=dry_run, verify=verify, workers=workers, report=report
        )


def _migrate(
    source: ArtifactStore,
    target: ArtifactStore,
    *,
    dry_run: bool,
    verify: bool,
    workers: int,
    report: Callable[[MigrationResult], None],
) -> MigrationResult:
    referenced = set(digests_referenced())
    sizes = {
        blob.digest: blob.size
        for blob in source.blobs()
        if not blob.set_aside or blob.digest in referenced
    }
    result = MigrationResult(missing=[])
    present = {blob.digest: blob.size for blob in target.blobs() if not blob.set_aside}
    for digest in sorted(referenced - sizes.keys()):
        # The target may be the only one that has it, after an earlier migration.
        if digest not in present:
            result.missing.append(digest)
    under_way: set[Future[int | None]] = set()
    with ThreadPoolExecutor(workers, "migrate") as pool:
        try:
            for digest, size in sizes.items():
                there = present.get(digest) == size
                if there and not verify:
                    result.present += 1
                    continue
                if dry_run:
                    result.present += there
                    result.copied += not there
                    result.copied_bytes += 0 if there else size
                    continue
                if len(under_way) >= 2 * workers:
                    under_way = _collect(under_way, result, report)
                under_way.add(pool.submit(_copy_blob, source, target, digest, there=there))
            while under_way:
                under_way = _collect(under_way, result, report)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return result


def _collect(
    under_way: set[Future[int | None]],
    result: MigrationResult,
    report: Callable[[MigrationResult], None],
) -> set[Future[int | None]]:
    done, pending = wait(under_way, return_when=FIRST_COMPLETED)
    for each in done:
        size = each.result()
        if size is None:
            result.present += 1
        else:
            result.copied += 1
            result.copied_bytes += size
        report(result)
    return pending


def _copy_blob(
    source: ArtifactStore, target: ArtifactStore, digest: str, *, there: bool
) -> int | None:
    """Bytes that were copied; None if the target's are intact."""
    if there and _is_intact(target, digest):
        return None
    if there:
        target.delete(digest)
    with source.open(digest) as stream:
        return target.put(read_chunks(stream), expected=digest).size


def _is_intact(store: ArtifactStore, digest: str) -> bool:
    hashed = hashlib.sha256()
    try:
        with store.open(digest) as stream:
            for chunk in read_chunks(stream):
                hashed.update(chunk)
    except StorageUnavailable:
        raise
    except ArtifactError:
        # Missing, or the store itself has found other bytes.
        return False
    return f"sha256:{hashed.hexdigest()}" == digest

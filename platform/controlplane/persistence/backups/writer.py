"""Write a backup while the product runs."""

from __future__ import annotations

import errno
import secrets
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from controlplane.persistence import encryption
from controlplane.persistence.advisory_locks import AdvisoryLock, session_lock
from controlplane.persistence.backups.blobs import back_up_blobs
from controlplane.persistence.backups.manifest import FORMAT, NAME, BackupManifest, BackupRefused
from controlplane.persistence.backups.tables import back_up_table, read_sequences, table_names
from controlplane.persistence.transactions import execute
from controlplane.ports.artifacts import ArtifactStore


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResult:
    folder: Path
    manifest: BackupManifest
    #: Blobs taken from an earlier backup instead of being copied.
    linked: int


def back_up(
    folder: Path,
    *,
    product: str,
    digests: Callable[[], Iterable[str]],
    store: ArtifactStore,
    with_artifacts: bool = True,
    earlier: Path | None = None,
) -> BackupResult:
    """Write a new backup to ``folder``, which must not exist.

    ``digests`` returns the blobs that the rows reference, within the transaction that copies the rows. A backup in
    progress has another name: ``folder`` appears when it is complete.

    :raises BackupRefused: if it cannot be created; nothing is left behind then.
    """
    if folder.exists():
        raise BackupRefused(f"{folder} is there already; name a folder that is not")
    partial = folder.with_name(f".{folder.name}.partial-{secrets.token_hex(4)}")
    try:
        partial.mkdir(parents=True, mode=0o700)
        (partial / "tables").mkdir()
        with session_lock(AdvisoryLock.COLLECT_GARBAGE) as held:
            if not held:
                raise BackupRefused(
                    "garbage is being collected, or another backup made; try again in a minute"
                )
            manifest, linked = _write_backup(
                partial,
                product=product,
                digests=digests,
                store=store,
                with_artifacts=with_artifacts,
                earlier=earlier,
            )
        manifest.write(partial)
        partial.rename(folder)
    except OSError as failure:
        if failure.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BackupRefused(f"no room is left for a backup in {folder.parent}") from failure
        raise BackupRefused(f"{folder} cannot be written: {failure}") from failure
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return BackupResult(folder=folder, manifest=manifest, linked=linked)


def _write_backup(
    folder: Path,
    *,
    product: str,
    digests: Callable[[], Iterable[str]],
    store: ArtifactStore,
    with_artifacts: bool,
    earlier: Path | None,
) -> tuple[BackupManifest, int]:
    created_at = datetime.now(UTC)
    with transaction.atomic():
        execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        migrations = migrations_applied()
        tables = tuple(back_up_table(name, folder=folder) for name in table_names())
        sequences = read_sequences()
        named = sorted(set(digests()))
    copies = back_up_blobs(
        named, store=store, folder=folder, included=with_artifacts, earlier=earlier
    )
    manifest = BackupManifest(
        format=FORMAT,
        product=product,
        created_at=created_at.isoformat(),
        migrations=migrations,
        tables=tables,
        sequences=sequences,
        blob_list=copies.checksum,
        blob_count=copies.count,
        blob_size=copies.size,
        blobs_included=with_artifacts,
        blobs_missing=copies.missing,
        key_fingerprints=encryption.key_fingerprints(),
    )
    return manifest, copies.linked


def migrations_applied() -> dict[str, tuple[str, ...]]:
    """Of each app, in the order of their names."""
    applied: dict[str, list[str]] = {}
    for app, name in sorted(MigrationRecorder(connection).applied_migrations()):
        applied.setdefault(app, []).append(name)
    return {app: tuple(names) for app, names in applied.items()}


def newest_sibling_backup(folder: Path) -> Path | None:
    """The newest complete backup in the same parent, if there is one."""
    found = [path.parent for path in folder.parent.glob(f"*/{NAME}")]
    return max(found, key=lambda path: (path / NAME).stat().st_mtime, default=None)

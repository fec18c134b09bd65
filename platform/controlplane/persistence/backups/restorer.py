"""Restore a backup: verify everything, then copy blobs, then load the database in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.db import OperationalError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from controlplane.persistence import encryption
from controlplane.persistence.backups.blobs import restore_blobs, verify_backup_blobs
from controlplane.persistence.backups.manifest import BackupManifest, BackupRefused, verify_checksum
from controlplane.persistence.backups.tables import (
    non_empty_tables,
    restore_sequences,
    restore_table,
    table_names,
    truncate_change_log,
    truncate_tables,
)
from controlplane.persistence.daily_partitions import missing_daily_partitions_create
from controlplane.persistence.transactions import (
    check_deferred_constraints,
    execute,
    fetch_row,
    set_lock_timeout,
)
from controlplane.ports.artifacts import ArtifactStore

#: Rows that migrations create.
_CREATED_BY_MIGRATIONS = frozenset({"django_content_type", "auth_permission"})
#: Squashed migrations that builds between 0.1.0 and 0.2.0 recorded beside those that they replaced.
_FORMER_SQUASHES = frozenset(
    {
        ("fleet", "0002_remote_clusters_and_node_locality"),
        ("jobs", "0002_filters_quantization_variables_and_retries"),
        ("quotas", "0004_defragmentations_what_ifs_and_phases"),
        ("registry", "0002_storage_quantization_catalog_and_imports"),
    }
)
#: Longer than any statement of a healthy product; then something still uses the database.
_LOCK_WAIT = "10s"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecryptableSecrets:
    """Secrets of one column that none of the keys here decrypts."""

    column: str
    lost: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    manifest: BackupManifest
    rows: int
    blobs: int
    #: None of the encryption keys of the backup is available.
    keys_missing: bool
    undecryptable: tuple[UndecryptableSecrets, ...]


def restore_backup(
    folder: Path, *, store: ArtifactStore, overwrite: bool = False, into_empty: bool = False
) -> RestoreResult:
    """Restore the backup.

    The database must be empty, or ``overwrite`` be given: then its rows are deleted in the same transaction
    that loads those of the backup. With ``into_empty`` the store must be empty as well, unless it must have the
    artifacts of a backup without them.

    :raises BackupRefused: if the backup is damaged, newer than this version, or there is something
        in the database. Nothing has been changed then.
    """
    manifest = BackupManifest.read(folder)
    _check_version(manifest)
    if not overwrite:
        _check_empty()
    if into_empty and manifest.blobs_included and any(store.blobs()):
        raise BackupRefused(
            "the artifact store of this home is not empty: restore into a new home, or without "
            "--into-empty, which adds what is missing to it"
        )
    for table in manifest.tables:
        verify_checksum(table.file, folder=folder)
    verify_backup_blobs(manifest, folder=folder, store=store)
    blobs = restore_blobs(manifest, folder=folder, store=store)
    try:
        rows = _restore_database(manifest, folder=folder)
    except OperationalError as error:
        if "lock timeout" in str(error):
            raise BackupRefused("the database is in use: stop the product first") from error
        raise
    return RestoreResult(
        manifest=manifest,
        rows=rows,
        blobs=blobs,
        keys_missing=not set(manifest.key_fingerprints) & set(encryption.key_fingerprints()),
        undecryptable=tuple(_undecryptable_secrets()),
    )


def _check_version(manifest: BackupManifest) -> None:
    known = MigrationExecutor(connection).loader.disk_migrations
    squashed = _squashed_migrations()
    applied = {(app, name) for app, names in manifest.migrations.items() for name in names}
    unknown = [
        f"{app}.{name}"
        for app, name in sorted(applied)
        if (app, name) not in {*known, *squashed, *_FORMER_SQUASHES}
    ]
    if unknown:
        raise BackupRefused(
            f"the backup is of version {manifest.product}, which is newer than this one: "
            f"{', '.join(unknown[:3])} is unknown here. Install that version or a later one"
        )
    for migration in applied & squashed.keys():
        missing = set(known[squashed[migration]].replaces) - applied
        if missing:
            app, name = min(missing)
            raise BackupRefused(
                f"the backup is of version {manifest.product}, which is too old: the migration "
                f"{app}.{name} no longer exists by itself. Restore it with that version, then upgrade"
            )


def _squashed_migrations() -> dict[tuple[str, str], tuple[str, str]]:
    """A migration that no longer exists by itself → the one that replaces it."""
    found = MigrationExecutor(connection).loader.disk_migrations
    return {old: key for key, migration in found.items() for old in migration.replaces}


def _check_empty() -> None:
    filled = [name for name in non_empty_tables() if name not in _CREATED_BY_MIGRATIONS]
    if filled:
        raise BackupRefused(
            f"the database is not empty: there are rows in {', '.join(filled[:5])}. Restore into an "
            "empty one, or say that what is there may go"
        )


@transaction.atomic
def _restore_database(manifest: BackupManifest, *, folder: Path) -> int:
    set_lock_timeout(_LOCK_WAIT)
    (schema,) = fetch_row("SELECT quote_ident(current_schema())")
    execute(f"DROP SCHEMA {schema} CASCADE")
    execute(f"CREATE SCHEMA {schema}")
    _migrate_to(to=_newest_migrations(manifest))
    truncate_tables(table_names())
    # Migrations create those of the days around today only.
    missing_daily_partitions_create([table.name for table in manifest.tables])
    rows = sum(restore_table(table, folder=folder) for table in manifest.tables)
    restore_sequences(manifest.sequences)
    truncate_change_log()
    check_deferred_constraints()
    _migrate_to(to=MigrationExecutor(connection).loader.graph.leaf_nodes())
    return rows


def _newest_migrations(manifest: BackupManifest) -> list[tuple[str, str]]:
    """Return that of each app up to which the schema of the backup is made."""
    squashed = _squashed_migrations()
    newest = [(app, names[-1]) for app, names in manifest.migrations.items() if names]
    return [squashed.get(each, each) for each in newest]


def _migrate_to(*, to: list[tuple[str, str]]) -> None:
    executor = MigrationExecutor(connection, progress_callback=_check_constraints_after_migration)
    executor.migrate(to)


def _check_constraints_after_migration(action: str, *_: object) -> None:
    """In a transaction of its own, each migration would end with this."""
    if action == "apply_success":
        check_deferred_constraints()


def _undecryptable_secrets() -> list[UndecryptableSecrets]:
    found = []
    for field in encryption.encrypted_fields():
        values = field.model._default_manager.values_list(field.attname, flat=True)
        lost = sum(not encryption.is_decryptable(value) for value in values.iterator() if value)
        if lost:
            column = f"{field.model._meta.label}.{field.name}"
            found.append(UndecryptableSecrets(column=column, lost=lost, of=values.count()))
    return found

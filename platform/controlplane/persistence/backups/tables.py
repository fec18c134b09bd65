"""Copy the rows of every table out of a database and into one."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import psycopg
from django.db import connection, transaction
from psycopg import sql

from controlplane.persistence.backups.manifest import BackupTableFile, file_checksum
from controlplane.persistence.transactions import (
    audit_entries_deletable,
    execute,
    fetch_row,
    fetch_rows,
)

#: Positions in it are valid in one database only.
_CHANGE_LOG = "outbox_resource_change"
#: The first is written by migrations, so that it shows the real state.
LEFT_OUT = frozenset({"django_migrations", _CHANGE_LOG})
_CHUNK = 1 << 20


def table_names() -> list[str]:
    """Tables of the product, in the order of their names."""
    rows = fetch_rows(
        "SELECT relname FROM pg_class WHERE relkind = 'r'"
        " AND relnamespace = current_schema()::regnamespace ORDER BY relname"
    )
    return [name for (name,) in rows if name not in LEFT_OUT]


def back_up_table(name: str, *, folder: Path) -> BackupTableFile:
    """The table's rows in a file of the backup."""
    columns = _non_generated_columns(name)
    path = folder / "tables" / f"{name}.gz"
    statement = sql.SQL("COPY {} ({}) TO STDOUT").format(
        sql.Identifier(name), _identifier_list(columns)
    )
    rows = 0
    with path.open("xb") as file:
        # No time in its header: the same rows are the same file.
        packed = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0)
        with packed, _psycopg_cursor() as cursor, cursor.copy(statement) as copy:
            for piece in copy:
                packed.write(piece)
                # A line break within a value is written as two other characters.
                rows += bytes(piece).count(b"\n")
        file.flush()
        os.fsync(file.fileno())
    return BackupTableFile(
        name=name, columns=tuple(columns), rows=rows, file=file_checksum(path, folder=folder)
    )


def restore_table(table: BackupTableFile, *, folder: Path) -> int:
    """Load the rows of the file into the table; return their number."""
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table.name), _identifier_list(table.columns)
    )
    with gzip.open(folder / table.file.path, "rb") as packed, _psycopg_cursor() as cursor:
        with cursor.copy(statement) as copy:
            while piece := packed.read(_CHUNK):
                copy.write(piece)
        # A closed cursor has forgotten it.
        return cursor.rowcount


def non_empty_tables() -> list[str]:
    return [name for name in table_names() if _has_rows(name)]


def truncate_tables(names: Sequence[str]) -> None:
    """Empty them all at once, the audit trail too: a backup brings its own."""
    if not names:
        return
    with transaction.atomic(), audit_entries_deletable():
        execute(sql.SQL("TRUNCATE {} CASCADE").format(_identifier_list(names)))


def truncate_change_log() -> None:
    """Delete what triggers have logged while rows were restored."""
    if fetch_row("SELECT to_regclass(%s) IS NOT NULL", [_CHANGE_LOG]) == (True,):
        execute(f"TRUNCATE {_CHANGE_LOG}")


def read_sequences() -> dict[str, tuple[int, bool]]:
    """Last value of each sequence, and whether it has been handed out."""
    rows = fetch_rows(
        "SELECT sequencename, COALESCE(last_value, start_value), last_value IS NOT NULL"
        " FROM pg_sequences WHERE schemaname = current_schema()"
    )
    return {name: (value, called) for name, value, called in rows}


def restore_sequences(values: Mapping[str, tuple[int, bool]]) -> None:
    for name, (value, called) in values.items():
        execute("SELECT setval(quote_ident(%s)::regclass, %s, %s)", [name, value, called])


def _non_generated_columns(table: str) -> list[str]:
    """Without those that the database computes."""
    rows = fetch_rows(
        "SELECT attname FROM pg_attribute WHERE attrelid = quote_ident(%s)::regclass"
        " AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
        [table],
    )
    return [name for (name,) in rows]


def _has_rows(table: str) -> bool:
    statement = sql.SQL("SELECT EXISTS (SELECT 1 FROM {})").format(sql.Identifier(table))
    return bool(fetch_row(statement)[0])


def _identifier_list(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)


def _psycopg_cursor() -> psycopg.Cursor[tuple[object, ...]]:
    """Django's own has no COPY; the transaction is the same."""
    connection.ensure_connection()
    driver = cast("psycopg.Connection[tuple[object, ...]]", connection.connection)
    return psycopg.Cursor(driver)

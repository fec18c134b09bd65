"""Statements that the ORM cannot say, and options of transactions: asynchronous commit, pipelines, dry runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import connection, transaction
from psycopg import sql

Statement = str | sql.Composed
Parameters = Sequence[Any] | Mapping[str, Any]

_in_dry_run: ContextVar[bool] = ContextVar("in_dry_run", default=False)


def fetch_rows(statement: Statement, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement; JSON comes as text."""
    with connection.cursor() as cursor:
        cursor.execute(_as_text(statement), parameters or None)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def fetch_row(statement: Statement, parameters: Parameters = ()) -> Any:
    """The first row of a statement as a tuple, or None."""
    with connection.cursor() as cursor:
        cursor.execute(_as_text(statement), parameters or None)
        return cursor.fetchone()


def execute(statement: Statement, parameters: Parameters = ()) -> int:
    """Execute a statement; return the number of rows that it changed."""
    with connection.cursor() as cursor:
        cursor.execute(_as_text(statement), parameters or None)
        count: int = cursor.rowcount
    return count


def _as_text(statement: Statement) -> str:
    if isinstance(statement, str):
        return statement
    connection.ensure_connection()
    return statement.as_string(connection.connection)


def set_lock_timeout(value: str = "") -> None:
    """Limit the wait for each lock until the transaction ends, for example to ``2s``; empty: the default again."""
    execute(
        sql.SQL("SET LOCAL lock_timeout TO {}").format(
            sql.Literal(value) if value else sql.SQL("DEFAULT")
        )
    )


def check_deferred_constraints() -> None:
    """Check them now rather than at the end: a table with checks that are due cannot be altered."""
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    execute("SET CONSTRAINTS ALL DEFERRED")


@contextmanager
def audit_entries_deletable() -> Iterator[None]:
    """Allow the deletion of audit entries in this block of a transaction; the database refuses every other."""
    execute("SET LOCAL ninefold.audit_retention TO 'on'")
    yield
    execute("SET LOCAL ninefold.audit_retention TO 'off'")


@contextmanager
def dry_run() -> Iterator[None]:
    """Run the block in a transaction that is rolled back at its end, after its deferred constraints were checked.

    Rows, outbox messages and callbacks of ``transaction.on_commit`` are discarded. What has an effect outside the
    database asks :func:`is_dry_run` and leaves it out.
    """
    token = _in_dry_run.set(True)
    try:
        with transaction.atomic():
            yield
            check_deferred_constraints()
            transaction.set_rollback(True)
    finally:
        _in_dry_run.reset(token)


def is_dry_run() -> bool:
    """Return whether the changes of this context will be rolled back."""
    return _in_dry_run.get()


@contextmanager
def pipelined_statements() -> Iterator[None]:
    """Pipeline statements: send each without waiting for the result of the previous one.

    So one is prepared while another runs. For statements whose result is not needed: row counts are not available
    inside. If one fails, later ones are not executed, and its error is raised by a later one or at the end, as
    Django's. Queries for rows wait for their result. A nested pipeline joins the outer one.

    :raises RuntimeError: outside a transaction, where some statements could persist.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("pipelined() must be entered inside a transaction")
    connection.ensure_connection()
    raw = connection.connection
    if raw.pgconn.pipeline_status:
        yield
        return
    with connection.wrap_database_errors, raw.pipeline():
        yield


def commit_asynchronously() -> None:
    """Commit this transaction asynchronously, without waiting for the disk.

    It is visible at once and survives the death of any of our processes. If the server itself dies within three
    times ``wal_writer_delay`` (0.6 s by default), the whole transaction may be lost: only for data that is written
    again automatically.

    :raises RuntimeError: outside a transaction.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("commit_asynchronously() must be called inside a transaction")
    execute("SET LOCAL synchronous_commit = off")

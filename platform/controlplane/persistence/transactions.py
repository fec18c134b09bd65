"""Transaction options: asynchronous commit, pipelined statements, and dry runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import connection, transaction

_in_dry_run: ContextVar[bool] = ContextVar("in_dry_run", default=False)


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
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
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
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")

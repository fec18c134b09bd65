"""What a transaction may lose if the database's machine dies."""

from __future__ import annotations

from django.db import connection


def commit_soon() -> None:
    """Let the commit of this transaction not wait for the disk.

    It is seen by everybody at once and survives the death of any process of ours. Should the server itself die
    within the next moment (three times ``wal_writer_delay``, 0.6 s by default), it may be lost, whole: only for
    what is written again by itself.

    :raises RuntimeError: outside a transaction.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("commit_soon() must be called inside a transaction")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")

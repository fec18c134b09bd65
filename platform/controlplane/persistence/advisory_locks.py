"""Advisory locks: one registry of their numbers, so that no two uses collide."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from django.db import connection

from controlplane.persistence.transactions import execute, fetch_row


class AdvisoryLock(IntEnum):
    PUBLISH_GATEWAY_SNAPSHOT = 1
    SYNC_INVENTORY = 2
    NUMBER_VERSION = 3
    CHARGE_STORAGE = 4
    ENROL_USER = 5
    NOTIFY_EVENT = 6
    COLLECT_GARBAGE = 7
    MEASURE_STORAGE = 8
    LOAD_CATALOG = 9
    ROLL_USAGE = 10
    CHANGE_QUEUES = 11
    APPROVE_DEFRAGMENTATION = 12
    PARTITION_HISTORY = 13
    SUM_HOUR = 14
    NAME_ROUTE = 15
    VERIFY_UPLOAD = 16
    NAME_SILENCE = 17


def lock_in_transaction(lock: AdvisoryLock, key: int = 0, *, shared: bool = False) -> None:
    """Wait for the lock and hold it until the transaction ends; ``shared`` with other shared holders.

    :raises RuntimeError: outside a transaction, where it would be released at once.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("an advisory lock must be taken inside a transaction")
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    execute(f"SELECT {function}(%s, %s)", [int(lock), key])


@contextmanager
def session_lock(lock: AdvisoryLock, key: int = 0) -> Iterator[bool]:
    """Hold the lock for the block, across transactions; False if another session holds it.

    It is released with the connection, also when the holder dies.
    """
    row = fetch_row("SELECT pg_try_advisory_lock(%s, %s)", [int(lock), key])
    acquired = bool(row and row[0])
    try:
        yield acquired
    finally:
        if acquired and connection.is_usable():
            execute("SELECT pg_advisory_unlock(%s, %s)", [int(lock), key])

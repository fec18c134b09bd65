"""Advisory locks: one registry of numbers, so that no two uses meet by accident."""

from __future__ import annotations

from enum import IntEnum

from django.db import connection


class AdvisoryLock(IntEnum):
    PUBLISH_GATEWAY_SNAPSHOT = 1
    SYNC_INVENTORY = 2
    NUMBER_VERSION = 3


def lock_in_transaction(lock: AdvisoryLock, key: int = 0) -> None:
    """Wait for the lock and hold it until the transaction ends.

    :raises RuntimeError: outside a transaction, where it would be given back at once.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("an advisory lock must be taken inside a transaction")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [int(lock), key])

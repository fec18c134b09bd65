"""Statements that do not wait for each other's answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def pipelined() -> Iterator[None]:
    """Send each statement at once, though the database may still be at an earlier one.

    So one is prepared while another runs. For statements of which nothing is asked but that they succeed: how many
    rows they wrote is not known within. If one fails, none behind it takes place, and its error is raised by a
    later one or at the end, as Django's. Who asks for rows waits for them as ever. Within another one it is part
    of that.

    :raises RuntimeError: outside a transaction, where some of them could stay.
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

"""A database that goes away in the middle of something, and comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import OperationalError, connection

#: In a turn that isolates, by then the first cards have been locked and written.
_WHERE = 'INSERT INTO "monitoring_isolation"'
_PATIENCE, _PAUSE = 60.0, 0.5


@dataclass(slots=True)
class Cut:
    #: How many statements the turn had made when its connection was killed.
    statements: int = 0
    broke: bool = False


def turn_cut_off(turn: Callable[[], object]) -> Cut:
    """A turn whose connection the server ends before what it has written is committed."""
    cut = Cut()
    settings = connection.get_connection_params()
    known = {
        name: settings[name]
        for name in ("dbname", "user", "password", "host", "port")
        if settings.get(name)
    }

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        cut.statements += 1
        answer = execute(sql, params, many, context)
        if _WHERE in sql and not cut.broke:
            cut.broke = True
            with connection.connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                (pid,) = cursor.fetchone()
            with psycopg.connect(**known, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [pid])
        return answer

    # What a worker does with a broken connection: the turn is lost, and the next one gets a new connection.
    with suppress(OperationalError), connection.execute_wrapper(watch):
        turn()
    connection.close()
    return cut


def until(happened: Callable[[], bool]) -> float:
    """Seconds until it happened; infinite if it does not within a minute."""
    began = time.perf_counter()
    while time.perf_counter() - began < _PATIENCE:
        if happened():
            return time.perf_counter() - began
        time.sleep(_PAUSE)
    return float("inf")

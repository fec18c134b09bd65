"""Seconds of processors: on a machine that others use too, those of the wall say as much of the others."""

from __future__ import annotations

import time
from dataclasses import dataclass

import psutil
from django.db import connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What this process, and the database's for this connection, have used."""

    ours: float
    database: float

    def since(self, before: Spent) -> Spent:
        return Spent(ours=self.ours - before.ours, database=self.database - before.database)


def spent() -> Spent:
    """So far; the database's counts from the beginning of the connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    database = psutil.Process(pid).cpu_times()
    return Spent(ours=time.process_time(), database=database.user + database.system)

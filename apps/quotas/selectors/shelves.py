"""What was made of rows before, so that only rows that changed are read again.

Every row of PostgreSQL has the number of the transaction that wrote it (``xmin``) and, within one, its place
(``ctid``); together they tell its versions apart. A shelf is asked with the versions as they are now, which is
one narrow scan; it reads what it does not know, and forgets what is gone. Nothing on it is trusted without its
version, so nobody has to tell it of changes.

Transactions are numbered anew in another server, so what was read before a server started is worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from django.db import connection

Value = TypeVar("Value")

#: Of a row: its ``xmin`` and ``ctid``, and what else its value was made of.
Version = tuple[object, ...]


class Shelf(Generic[Value]):
    """Values by primary key. Threads may share it: each puts up a whole new one in place of the old."""

    def __init__(self, read: Callable[[Collection[int]], Mapping[int, Value]]) -> None:
        """:param read: makes the values of rows; rows that are gone by then are left out."""
        self._read = read
        self._server: object = None
        self._known: Mapping[int, tuple[Version, Value]] = {}

    def values(self, versions: Mapping[int, Version], *, server: object) -> dict[int, Value]:
        """The value of each row, in the order of the versions; those that are gone meanwhile are absent.

        :param server: as ``server_started`` says.
        """
        known = self._known if server == self._server else {}
        kept: dict[int, tuple[Version, Value]] = {}
        missing = []
        for key, version in versions.items():
            found = known.get(key)
            if found is not None and found[0] == version:
                kept[key] = found
            else:
                missing.append(key)
        if missing:
            read = self._read(missing)
            fresh = {key: (versions[key], value) for key, value in read.items()}
            both = {**kept, **fresh}
            kept = {key: both[key] for key in versions if key in both}
        self._server, self._known = server, kept
        return {key: value for key, (_version, value) in kept.items()}


def server_started() -> object:
    """Tells one run of a server, and one database of it, from any other."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_postmaster_start_time(), current_database()")
        found: object = cursor.fetchone()
    return found

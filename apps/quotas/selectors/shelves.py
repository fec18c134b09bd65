"""What was made of rows before, so that only rows that changed are read again.

Every row of PostgreSQL has the number of the transaction that wrote it (``xmin``) and, within one, its place
(``ctid``); together they tell its versions apart. A shelf is asked with the *marks* of all rows as they are now,
which is one narrow scan that comes as one text; it reads what it does not know, and forgets what is gone. Nothing
on it is trusted without its mark, so nobody has to tell it of changes.

Transactions are numbered anew in another server, so what was read before a server started is worth nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

from django.db import connection

Value = TypeVar("Value")

#: ``PRIMARY KEY(PLACE)TRANSACTION``, and behind it what else the row's value was made of; without blanks.
Mark = str


class Shelf(Generic[Value]):
    """Values by the marks of their rows. Threads may share it: each puts up a whole new one."""

    def __init__(self, read: Callable[[Collection[int]], Mapping[int, Value]]) -> None:
        """:param read: makes the values of rows by primary key; rows that are gone by then are left out."""
        self._read = read
        self._server: object = None
        self._known: Mapping[Mark, Value] = {}

    def values(self, marks: Sequence[Mark], *, server: object) -> Collection[Value]:
        """The value of each row, in the order of the marks; those that are gone meanwhile are absent.

        :param server: as ``server_started`` says.
        """
        known = self._known if server == self._server else {}
        if missing := set(marks) - known.keys():
            keys = {_key(mark): mark for mark in missing}
            fresh = {keys[key]: value for key, value in self._read(keys).items()}
            known = {**known, **fresh}
            marks = [mark for mark in marks if mark in known]
        kept = dict(zip(marks, map(known.__getitem__, marks), strict=True))
        self._server, self._known = server, kept
        return kept.values()


def marks_now(statement: str) -> list[Mark]:
    """The marks that the statement gives as one text, in its order.

    For each row ``row.id || row.ctid::text || row.xmin::text``, put together by ``string_agg(…, ' ')``.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement)
        (text,) = cursor.fetchone()
    return text.split(" ") if text else []


#: A server that lost one of its processes recovers without being started anew, and may give numbers of
#: transactions that were not on the disk yet to others; but its statistics begin anew as well.
SERVER = "SELECT pg_postmaster_start_time(), current_database(), stats_reset FROM pg_stat_bgwriter"


def server_started() -> object:
    """Tells one run of a server, and one database of it, from any other."""
    with connection.cursor() as cursor:
        cursor.execute(SERVER)
        found: object = cursor.fetchone()
    return found


def _key(mark: Mark) -> int:
    return int(mark[: mark.index("(")])

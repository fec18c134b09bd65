"""Values of many rows, kept up by the few that changed since the last look.

PostgreSQL numbers its transactions and keeps with each row the number of the one that wrote it (``xmin``). A look
notes the oldest transaction that was still running (its *horizon*): whatever that look did not see was written by
that one or a later one. So the next look asks for rows written since, and for the number and the sum of all keys;
if these are not those of the rows that are known by then, some have gone: rows that were written since and are
found elsewhere, or else the keys of all that are left say which. Nobody has to tell of changes, and ten thousand
rows that wait cost one count.

What a transaction sees of its own writes is given, but not kept: it may be rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Generic, NamedTuple, Self, TypeVar

from django.db import connection

Value = TypeVar("Value")
Sum = TypeVar("Sum")

#: ``PRIMARY KEY(PLACE)TRANSACTION``, and behind it what else the row's value was made of; without blanks.
Mark = str

#: Transactions after which a horizon says nothing any more: their short numbers begin anew every four milliards.
_TOO_OLD = 2**30


class Look(NamedTuple):
    """Statements about the rows that are followed."""

    #: Gives the fields of ``_Found``, texts and keys as texts with blanks between them, or NULL. It takes the last
    #: horizon, or NULL, as ``%(since)s``.
    changed: str
    #: The primary keys of all rows as one text, with blanks between them.
    keys: str


class _Tally(NamedTuple):
    """What tells whether the rows that are known are those that are there."""

    rows: int
    #: Of the primary keys.
    total: int

    @classmethod
    def of(cls, keys: Collection[int]) -> Self:
        return cls(len(keys), sum(keys))

    def without(self, keys: Collection[int]) -> Self:
        return self._replace(rows=self.rows - len(keys), total=self.total - sum(keys))


class _Found(NamedTuple):
    """What one look found."""

    horizon: int
    #: It saw nothing that its own transaction may take back.
    unwritten: bool
    tally: _Tally
    #: Of rows that were written since the last look, by primary key.
    marks: Mapping[int, Mark]
    #: Keys of rows that were written since and are none of these, or no longer; as many as are cheaply found.
    elsewhere: Set[int]


class _Astray(Exception):
    """Rows are there of which nobody was told."""


class Followed(NamedTuple, Generic[Value, Sum]):
    """What is known by one look."""

    #: As ``shelves.server_started`` says.
    server: object
    horizon: int
    #: It saw nothing that its own transaction may take back.
    committed: bool
    #: By primary key, in their order; the marks are of the same rows.
    values: Mapping[int, Value]
    marks: Mapping[int, Mark]
    #: What was made of all values together.
    sum: Sum


class Follower(Generic[Value, Sum]):
    """The values of all rows that a look is about. Threads may share it: each puts up a whole new memory."""

    def __init__(
        self,
        look: Look,
        read: Callable[[Collection[int]], Mapping[int, Value]],
        add: Callable[[Sum | None, Sequence[Value], Sequence[Value]], Sum],
    ) -> None:
        """:param look: of rows in the order of their primary keys. What a row's value is made of counts as changed
            by the ``xmin`` of every row that it was read from; marks tell versions of values apart.
        :param read: makes the values of rows by primary key; rows that are gone by then are left out.
        :param add: makes the new sum of the last one, which it leaves as it is, or of nothing, and of the values
            that have gone and come since.
        """
        self._look = look
        self._read = read
        self._add = add
        self._known: Followed[Value, Sum] | None = None

    def now(self, *, server: object) -> Followed[Value, Sum]:
        """All of them.

        :param server: as ``shelves.server_started`` says.
        """
        known = self._known
        if known is not None and known.server != server:
            known = None
        try:
            seen = self._seen(known, server=server)
        except _Astray:
            seen = self._seen(None, server=server)
        if seen.committed:
            self._known = seen
        return seen

    def _seen(self, known: Followed[Value, Sum] | None, *, server: object) -> Followed[Value, Sum]:
        """:raises _Astray: if what is known does not lead to what is there; never if nothing is."""
        found = _look(self._look, known)
        if known is not None and not 0 <= found.horizon - known.horizon <= _TOO_OLD:
            raise _Astray
        marks = dict(known.marks) if known else {}
        values = dict(known.values) if known else {}
        went: list[Value] = []
        fresh = {key: mark for key, mark in found.marks.items() if marks.get(key) != mark}
        newest = next(reversed(marks), 0)
        unordered = any(key < newest and key not in marks for key in fresh)
        marks.update(fresh)
        for key in self._gone(marks.keys(), found):
            del marks[key]
            fresh.pop(key, None)
            went += _popped(values, key)
        came: Mapping[int, Value] = self._read(fresh) if fresh else {}
        for key in fresh:
            if key in came:
                went += [values[key]] if key in values else []
                values[key] = came[key]
            else:
                del marks[key]
                went += _popped(values, key)
        if unordered:
            values = {key: values[key] for key in sorted(values)}
            marks = {key: marks[key] for key in values}
        if known is None or went or came:
            total = self._add(known.sum if known else None, went, list(came.values()))
        else:
            total = known.sum
        return Followed(server, found.horizon, found.unwritten, values, marks, total)

    def _gone(self, known: Set[int], found: _Found) -> Set[int]:
        """Which of the keys are those of no row any more.

        :raises _Astray: if rows are there that are not among them.
        """
        tally = _Tally.of(known)
        if tally == found.tally:
            return frozenset()
        gone = known & found.elsewhere
        if tally.without(gone) != found.tally:
            left = _keys(self._look)
            gone = known - left
            # Others may have come since the look; they are the next one's.
            if len(known) - len(gone) < found.tally.rows and not left <= known:
                raise _Astray
        return gone


def _popped(values: dict[int, Value], key: int) -> list[Value]:
    return [values.pop(key)] if key in values else []


def _look(look: Look, known: Followed[Value, Sum] | None) -> _Found:
    with connection.cursor() as cursor:
        cursor.execute(look.changed, {"since": None if known is None else str(known.horizon)})
        horizon, unwritten, count, total, text, elsewhere = cursor.fetchone()
    marks = {int(mark[: mark.index("(")]): mark for mark in text.split(" ")} if text else {}
    return _Found(int(horizon), unwritten, _Tally(count, total), marks, _split(elsewhere))


def _keys(look: Look) -> Set[int]:
    with connection.cursor() as cursor:
        cursor.execute(look.keys)
        (text,) = cursor.fetchone()
    return _split(text)


def _split(text: str | None) -> Set[int]:
    return set(map(int, text.split(" "))) if text else set()

"""Values made of many rows, of which only rows that changed are read again.

Every row of PostgreSQL has the number of the transaction that wrote it (``xmin``) and, within one, its place
(``ctid``); together they tell its versions apart. Transactions are numbered anew in another server, so what was
read before a server started is worth nothing (``server_identity``).

``RowVersionCache`` is asked with the *versions* of all rows as they are now, which is one narrow scan that comes
as one text; it reads what it does not know, and drops what is gone. No value is used without its version, so
changes need not be published.

``ChangeFeed`` does not scan all versions. A query records the oldest transaction that was still running (its
*horizon*): whatever that query did not see was written by that one or a later one. So the next query asks for rows
written since, and for the number and the sum of all keys; if these are not those of the rows that are known by
then, some have gone: rows that were written since and are found elsewhere, or else the keys of all that are left
say which. Ten thousand pending rows cost one count. What a transaction sees of its own writes is returned, but not
cached: it may be rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Generic, NamedTuple, Self, TypeVar

from django.db import connection

Value = TypeVar("Value")
Summary = TypeVar("Summary")

#: ``PRIMARY KEY(CTID)XMIN``, followed by versions of other rows that the value is made of; without blanks.
RowVersion = str

#: Transactions after which a horizon is useless: 32-bit transaction ids wrap around.
_TOO_OLD = 2**30


class FeedQuery(NamedTuple):
    """SQL of a change feed."""

    #: Returns the fields of ``_Changes``, versions and keys as texts separated by blanks, or NULL. Takes the last
    #: horizon, or NULL, as ``%(since)s``.
    changed: str
    #: The primary keys of all rows as one text, with blanks between them.
    keys: str


class _RowTally(NamedTuple):
    """Checksum by which known rows are compared with existing rows."""

    rows: int
    #: Sum of the primary keys.
    total: int

    @classmethod
    def of(cls, keys: Collection[int]) -> Self:
        return cls(len(keys), sum(keys))

    def without(self, keys: Collection[int]) -> Self:
        return self._replace(rows=self.rows - len(keys), total=self.total - sum(keys))


class _Changes(NamedTuple):
    """Result of one query."""

    horizon: int
    #: It saw nothing that its own transaction may roll back.
    unwritten: bool
    tally: _RowTally
    #: Versions of rows that were written since the last query, by primary key.
    versions: Mapping[int, RowVersion]
    #: Keys of rows that were written since and no longer belong to the feed; those that are cheap to find.
    elsewhere: Set[int]


class _OutOfSync(Exception):
    """Rows exist that the query did not return."""


class FeedState(NamedTuple, Generic[Value, Summary]):
    """State of a change feed after one query."""

    #: See ``server_identity``.
    server: object
    horizon: int
    #: It saw nothing that its own transaction may roll back.
    committed: bool
    #: Values and versions by primary key, in key order.
    values: Mapping[int, Value]
    versions: Mapping[int, RowVersion]
    #: Aggregate over all values.
    summary: Summary


class ChangeFeed(Generic[Value, Summary]):
    """The values of all rows of a query, updated incrementally. Thread-safe: the state is replaced as a whole."""

    def __init__(
        self,
        query: FeedQuery,
        read: Callable[[Collection[int]], Mapping[int, Value]],
        add: Callable[[Summary | None, Sequence[Value], Sequence[Value]], Summary],
    ) -> None:
        """:param query: of rows in primary key order. A value counts as changed
            by the ``xmin`` of every row that it was read from; versions distinguish values.
        :param read: returns values by primary key, without rows that no longer exist.
        :param add: returns the new aggregate from the last one (not modified) or None, and the values
            that were removed and added.
        """
        self._query = query
        self._read = read
        self._add = add
        self._known: FeedState[Value, Summary] | None = None

    def refresh(self, *, server: object) -> FeedState[Value, Summary]:
        """The current values.

        :param server: see ``server_identity``.
        """
        known = self._known
        if known is not None and known.server != server:
            known = None
        try:
            seen = self._refresh_state(known, server=server)
        except _OutOfSync:
            seen = self._refresh_state(None, server=server)
        if seen.committed:
            self._known = seen
        return seen

    def _refresh_state(
        self, known: FeedState[Value, Summary] | None, *, server: object
    ) -> FeedState[Value, Summary]:
        """:raises _OutOfSync: if the known state cannot be updated; never without one."""
        changes = _run_query(self._query, known)
        if known is not None and not 0 <= changes.horizon - known.horizon <= _TOO_OLD:
            raise _OutOfSync
        versions = dict(known.versions) if known else {}
        values = dict(known.values) if known else {}
        removed: list[Value] = []
        fresh = {
            key: version
            for key, version in changes.versions.items()
            if versions.get(key) != version
        }
        newest = next(reversed(versions), 0)
        unordered = any(key < newest and key not in versions for key in fresh)
        versions.update(fresh)
        for key in self._missing_keys(versions.keys(), changes):
            del versions[key]
            fresh.pop(key, None)
            removed += _pop_values(values, key)
        added: Mapping[int, Value] = self._read(fresh) if fresh else {}
        for key in fresh:
            if key in added:
                removed += [values[key]] if key in values else []
                values[key] = added[key]
            else:
                del versions[key]
                removed += _pop_values(values, key)
        if unordered:
            values = {key: values[key] for key in sorted(values)}
            versions = {key: versions[key] for key in values}
        if known is None or removed or added:
            total = self._add(known.summary if known else None, removed, list(added.values()))
        else:
            total = known.summary
        return FeedState(server, changes.horizon, changes.unwritten, values, versions, total)

    def _missing_keys(self, known: Set[int], changes: _Changes) -> Set[int]:
        """Keys of rows that no longer exist.

        :raises _OutOfSync: if rows exist that are not among them.
        """
        tally = _RowTally.of(known)
        if tally == changes.tally:
            return frozenset()
        missing = known & changes.elsewhere
        if tally.without(missing) != changes.tally:
            left = _select_keys(self._query)
            missing = known - left
            # Rows may have been added since the query; the next one returns them.
            if len(known) - len(missing) < changes.tally.rows and not left <= known:
                raise _OutOfSync
        return missing


def _pop_values(values: dict[int, Value], key: int) -> list[Value]:
    return [values.pop(key)] if key in values else []


def _run_query(query: FeedQuery, known: FeedState[Value, Summary] | None) -> _Changes:
    with connection.cursor() as cursor:
        cursor.execute(query.changed, {"since": None if known is None else str(known.horizon)})
        horizon, unwritten, count, total, text, elsewhere = cursor.fetchone()
    versions = (
        {int(version[: version.index("(")]): version for version in text.split(" ")} if text else {}
    )
    return _Changes(
        int(horizon), unwritten, _RowTally(count, total), versions, _split_keys(elsewhere)
    )


def _select_keys(query: FeedQuery) -> Set[int]:
    with connection.cursor() as cursor:
        cursor.execute(query.keys)
        (text,) = cursor.fetchone()
    return _split_keys(text)


def _split_keys(text: str | None) -> Set[int]:
    return set(map(int, text.split(" "))) if text else set()


class RowVersionCache(Generic[Value]):
    """Values by row version. Thread-safe: the cache is replaced as a whole."""

    def __init__(self, read: Callable[[Collection[int]], Mapping[int, Value]]) -> None:
        """:param read: returns values by primary key, without rows that no longer exist."""
        self._read = read
        self._server: object = None
        self._known: Mapping[RowVersion, Value] = {}

    def values(self, versions: Sequence[RowVersion], *, server: object) -> Collection[Value]:
        """The value of each row, in the order of the versions; without rows that no longer exist.

        :param server: see ``server_identity``.
        """
        known = self._known if server == self._server else {}
        if missing := set(versions) - known.keys():
            keys = {_version_key(version): version for version in missing}
            fresh = {keys[key]: value for key, value in self._read(keys).items()}
            known = {**known, **fresh}
            versions = [version for version in versions if version in known]
        current = dict(zip(versions, map(known.__getitem__, versions), strict=True))
        self._server, self._known = server, current
        return current.values()


def row_versions(statement: str) -> list[RowVersion]:
    """The row versions that the statement returns as one text.

    For each row ``row.id || row.ctid::text || row.xmin::text``, joined by ``string_agg(…, ' ')``.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement)
        (text,) = cursor.fetchone()
    return text.split(" ") if text else []


#: After a crash of a backend the server recovers without a restart, and may reuse transaction ids that were
#: not on disk yet; but its statistics are reset as well.
SERVER_IDENTITY = (
    "SELECT pg_postmaster_start_time(), current_database(), stats_reset FROM pg_stat_bgwriter"
)


def server_identity() -> object:
    """A value that identifies one run of a server and one of its databases."""
    with connection.cursor() as cursor:
        cursor.execute(SERVER_IDENTITY)
        found: object = cursor.fetchone()
    return found


def _version_key(version: RowVersion) -> int:
    return int(version[: version.index("(")])

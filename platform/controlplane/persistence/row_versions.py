"""Values made of many rows, of which only rows that changed are read again.

A row of a :class:`~controlplane.persistence.models.VersionedModel` gets a number from one sequence when it is
inserted, and a trigger gives it the next one at each update. A number is never used twice, not even after a
rollback, so equal versions are the same content. :class:`RowCache` selects the versions of all rows, which is one
narrow scan, and reads the rows whose version it does not have. Writers publish nothing, and what a transaction
that is still open has written is right for whoever sees it.

The exception is a crash: transactions commit asynchronously (docs/decisions/0042-asynchronous-commits.md), so a
recovered server may hand out numbers again that it had not yet written to disk. Caches are valid for one run of a
server (:func:`database_server_identity`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from django.db import migrations

from controlplane.persistence.transactions import fetch_row

Value = TypeVar("Value")
Summary = TypeVar("Summary")

#: A backend that crashes makes the server recover without a restart, but resets its statistics.
SERVER_IDENTITY: Final = (
    "SELECT pg_postmaster_start_time(), current_database(), stats_reset FROM pg_stat_bgwriter"
)


class RowVersionTrigger(migrations.RunSQL):
    """Migration: each update of those columns of a table, or of any, gives the row the next version."""

    def __init__(self, table: str, *columns: str) -> None:
        which = f" OF {', '.join(columns)}" if columns else ""
        super().__init__(
            f"CREATE TRIGGER row_version BEFORE UPDATE{which} ON {table}"
            " FOR EACH ROW EXECUTE FUNCTION persistence_next_row_version()",
            f"DROP TRIGGER row_version ON {table}",
        )


def database_server_identity() -> object:
    """A value that identifies one run of a server and one of its databases."""
    found: object = fetch_row(SERVER_IDENTITY)
    return found


class CachedRows(NamedTuple, Generic[Value, Summary]):
    """All rows of a query at one time."""

    server: object
    versions: Mapping[int, str]
    #: By primary key, in the order of the query.
    values: Mapping[int, Value]
    #: Aggregate over all values.
    summary: Summary


class RowCache(Generic[Value, Summary]):
    """The values of all rows of a query. Thread-safe: the cached rows are replaced as a whole."""

    def __init__(
        self,
        versions: str,
        read: Callable[[Collection[int]], Mapping[int, Value]],
        summarize: Callable[[Summary | None, Sequence[Value], Sequence[Value]], Summary],
    ) -> None:
        """:param versions: SQL that returns an array of primary keys and one of their versions as text. A version
            contains whatever the value depends on besides the row's own version.
        :param read: returns values by primary key, without rows that no longer exist.
        :param summarize: returns the new aggregate from the last one (not modified) or None, and the values
            that were removed and added.
        """
        self._versions = versions
        self._read = read
        self._summarize = summarize
        self._cached: CachedRows[Value, Summary] | None = None

    def refresh(self, *, server: object) -> CachedRows[Value, Summary]:
        """The current rows.

        :param server: see :func:`database_server_identity`.
        """
        cached = self._cached
        if cached is not None and cached.server != server:
            cached = None
        versions = self._select_versions()
        if cached is not None and versions == cached.versions and [*versions] == [*cached.versions]:
            return cached
        known = cached.versions if cached else {}
        old: Mapping[int, Value] = cached.values if cached else {}
        stale = [pk for pk, version in versions.items() if known.get(pk) != version]
        read = self._read(stale) if stale else {}
        for pk in set(stale).difference(read):
            del versions[pk]
        values = {pk: read[pk] if pk in read else old[pk] for pk in versions}
        removed = [value for pk, value in old.items() if pk in read or pk not in versions]
        summary = self._summarize(cached.summary if cached else None, removed, [*read.values()])
        self._cached = CachedRows(server, versions, values, summary)
        return self._cached

    def _select_versions(self) -> dict[int, str]:
        keys, versions = fetch_row(self._versions)
        return dict(zip(keys or (), versions or (), strict=True))


def no_summary(_before: None, _removed: Sequence[object], _added: Sequence[object]) -> None:
    """For values without an aggregate."""

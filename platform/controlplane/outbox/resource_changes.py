"""The log of changes that watches of REST lists read.

Triggers write a row for each committed change of a listed object. Positions are transaction identifiers: a
transaction gets its identifier when it first writes and becomes visible when it commits, so rows appear in another
order than their numbers suggest. A reader therefore reads up to the oldest identifier that is still in progress
(``pg_snapshot_xmin``)::

    xid   … 807   808   809   810   811 …
              committed    open  committed        a reader that has read up to 808 reads [808, 810);
                           ▲                      811 follows when 810 has ended
                           └── horizon

Nothing below the horizon can still appear: an interval that was read once is the same whenever it is read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import migrations
from django.db.models.functions import Now

from controlplane.outbox.models import ResourceChange
from controlplane.persistence.transactions import fetch_row

#: A position can be resumed at least this long.
RETENTION = timedelta(hours=1)
#: Rows are deleted later than positions expire, so that no position is valid whose rows are gone.
_DELETED_AFTER = RETENTION + timedelta(minutes=10)
#: Columns whose change nobody watches.
_IGNORED = ("leased_until", "lease_token", "last_used_at", "last_seen_at", "row_version")


class ChangeLogTrigger(migrations.RunSQL):
    """Migration: log changes of the rows of a table.

    :param owner: SQL of the owner of a row ``ROW``, for example ``'team:' || ROW.team_id``; null: of nobody alone.
    :param uid: SQL of the uid of the changed object; another object's for a table whose rows are parts of it.
    :param columns: updates of these columns only are logged; default: of all but leases and times of use. For
        tables with many updates: a comparison of whole rows takes longer.
    """

    def __init__(
        self,
        table: str,
        *,
        owner: str = "NULL",
        uid: str = "ROW.uid",
        source: str = "",
        columns: Sequence[str] = (),
    ) -> None:
        part_of = bool(source)
        name = "log_part" if part_of else "log_change"
        function = f"{table}_{name}"
        source = source or table

        def logged(row: str, operation: str) -> str:
            # Of constants in migrations.
            return (
                "INSERT INTO outbox_resource_change (source, uid, owner, operation, xid, created_at)"  # noqa: S608
                f" SELECT '{source}', changed.uid, COALESCE(changed.owner, ''), {operation},"
                " pg_current_xact_id()::text::bigint, statement_timestamp()"
                f" FROM (SELECT {uid.replace('ROW.', f'{row}.')} AS uid,"
                f" {owner.replace('ROW.', f'{row}.')} AS owner) AS changed"
                " WHERE changed.uid IS NOT NULL"
            )

        inserted, deleted = ("'U'", "'U'") if part_of else ("'I'", "'D'")
        own_new, own_old = (owner.replace("ROW.", f"{row}.") for row in ("NEW", "OLD"))
        which = f" OF {', '.join(columns)}" if columns else ""
        ignored = "{" + ",".join(_IGNORED) + "}"
        when = (
            ""
            if columns
            else f" WHEN (to_jsonb(OLD) - '{ignored}'::text[]"
            f" IS DISTINCT FROM to_jsonb(NEW) - '{ignored}'::text[])"
        )
        super().__init__(
            f"""
            CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF TG_OP = 'INSERT' THEN
                    {logged("NEW", inserted)};
                ELSIF TG_OP = 'DELETE' THEN
                    {logged("OLD", deleted)};
                ELSE
                    {logged("NEW", "'U'")};
                    IF {own_old} IS DISTINCT FROM {own_new} THEN
                        {logged("OLD", "'U'")};
                    END IF;
                END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER {name} AFTER INSERT OR DELETE ON {table}
                FOR EACH ROW EXECUTE FUNCTION {function}();
            CREATE TRIGGER {name}_update AFTER UPDATE{which} ON {table}
                FOR EACH ROW{when} EXECUTE FUNCTION {function}();
            """,
            f"""
            DROP TRIGGER {name}_update ON {table};
            DROP TRIGGER {name} ON {table};
            DROP FUNCTION {function}();
            """,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedChange:
    """What happened to one object within an interval."""

    #: Of its last row in the log.
    key: int
    #: Table of the object.
    source: str
    uid: str
    created: bool
    #: Its row was deleted.
    deleted: bool
    #: It is a single team's or user's.
    owned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeHorizon:
    """The end of what can be read now."""

    #: The identifier below which all transactions have ended.
    xid: int
    #: Identifies the log: a restored database has another one.
    log: int
    #: The next identifier: what has committed so far is below it.
    next_xid: int


def change_horizon() -> ChangeHorizon:
    xid, log, next_xid = fetch_row(
        "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint,"
        " 'outbox_resource_change'::regclass::oid::bigint,"
        " pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    )
    return ChangeHorizon(xid=xid, log=log, next_xid=next_xid)


def changes_between(
    sources: Collection[str], *, after: int, until: int, owners: Collection[str] | None
) -> list[LoggedChange]:
    """The objects that transactions from ``after`` and below ``until`` changed, by their last change.

    :param sources: tables of the objects.
    :param owners: those whose objects are read, besides objects of nobody alone; None: all.
    """
    rows = ResourceChange.objects.filter(source__in=sources, xid__gte=after, xid__lt=until)
    if owners is not None:
        rows = rows.filter(owner__in=["", *owners])
    return _last_changes(
        rows.order_by("id").values_list("id", "source", "uid", "operation", "owner")
    )


def _last_changes(rows: Iterable[tuple[int, str, str, str, str]]) -> list[LoggedChange]:
    found: dict[tuple[str, str], LoggedChange] = {}
    for key, source, uid, operation, owner in rows:
        earlier = found.pop((source, uid), None)
        found[source, uid] = LoggedChange(
            key=key,
            source=source,
            uid=uid,
            created=operation == "I" or (earlier is not None and earlier.created),
            deleted=operation == "D" or (earlier is not None and earlier.deleted),
            owned=bool(owner) or (earlier is not None and earlier.owned),
        )
    return list(found.values())


def delete_expired_changes() -> int:
    """Delete rows past their retention; return their number."""
    return ResourceChange.objects.filter(created_at__lt=Now() - _DELETED_AFTER).delete()[0]

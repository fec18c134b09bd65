"""Partitions of one day, of tables that are partitioned by time.

Django does not know them. Their names are ``<table>_<YYYYMMDD>``, of the day in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta

from psycopg import sql

from controlplane.persistence.transactions import execute, fetch_rows

_NAME = re.compile(r"(?P<table>\w+)_(?P<day>\d{8})")


def daily_partition_create(table: str, *, day: date) -> None:
    """Created separately and attached then, so that readers and writers do not wait."""
    name = sql.Identifier(daily_partition_name(table, day=day))
    parent = sql.Identifier(table)
    create = sql.SQL("CREATE TABLE {name} (LIKE {parent} INCLUDING ALL)")
    attach = sql.SQL(
        "ALTER TABLE {parent} ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({end})"
    )
    for statement in (create, attach):
        execute(
            statement.format(
                name=name,
                parent=parent,
                first=sql.Literal(f"{day} 00:00:00+00"),
                end=sql.Literal(f"{day + timedelta(days=1)} 00:00:00+00"),
            )
        )


def daily_partition_name(table: str, *, day: date) -> str:
    return f"{table}_{day:%Y%m%d}"


def daily_partition_days(table: str) -> list[date]:
    """The days that have a partition, the oldest first."""
    rows = fetch_rows(
        "SELECT child.relname FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid"
        " WHERE inhparent = quote_ident(%s)::regclass ORDER BY 1",
        [table],
    )
    names = [row[0].removeprefix(f"{table}_") for row in rows]
    return [_day(name) for name in names]


def missing_daily_partitions_create(names: Collection[str]) -> None:
    """Of those names, create the partitions of tables that exist; a backup names them as tables."""
    rows = fetch_rows(
        "SELECT relname FROM pg_class WHERE relkind = 'p'"
        " AND relnamespace = current_schema()::regnamespace"
    )
    partitioned = {name for (name,) in rows}
    for table in partitioned:
        wanted = {
            _day(found["day"])
            for found in map(_NAME.fullmatch, names)
            if found and found["table"] == table
        }
        for day in sorted(wanted.difference(daily_partition_days(table))):
            daily_partition_create(table, day=day)


def _day(text: str) -> date:
    return datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC).date()

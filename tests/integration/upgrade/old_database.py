"""A database beside that of the tests, filled from the dump and brought to the newest migration."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection
from psycopg import sql

from tests.databases import connect_to, create_database
from tests.integration.upgrade.recorded import FIXTURE, INSTALLATION

_COPY = re.compile(r"^(COPY [^\n]* FROM stdin);\n(.*?)^\\\.\n", re.MULTILINE | re.DOTALL)

#: The rows of every table, by the table's name.
Contents = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """The upgraded database, and its rows before and after the migration."""

    name: str
    before: Contents = field(repr=False)
    after: Contents = field(repr=False)


def create(home: Path) -> Upgraded:
    """Load the dump into an empty database and migrate it.

    :param home: takes the place of the folder that the dump names as the home of the installation.
    """
    name = f"{connection.settings_dict['NAME']}_upgraded"
    create_database(name, template="template0")
    earlier = connect_to(name)
    try:
        _load(home)
        before = contents()
        call_command("migrate", verbosity=0)
        return Upgraded(name=name, before=before, after=contents())
    finally:
        connect_to(earlier)


def _load(home: Path) -> None:
    """Execute the dump: statements as they are, and the rows between them by COPY."""
    text = (FIXTURE / "installation.sql").read_text(encoding="utf-8")
    text = text.replace(INSTALLATION["home"], str(home))
    with connection.cursor() as cursor:
        end = 0
        for block in _COPY.finditer(text):
            _run(cursor, text[end : block.start()])
            with cursor.copy(block[1]) as copy:
                copy.write(block[2])
            end = block.end()
        _run(cursor, text[end:])


def _run(cursor: Any, statements: str) -> None:
    if statements.strip():
        cursor.execute(statements)


def contents() -> Contents:
    """Every row of every table of the public schema; a partition is a table of its own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        tables = [table for (table,) in cursor.fetchall()]
        found = {}
        for table in sorted(tables):
            statement = sql.SQL("SELECT to_jsonb(each)::text FROM {} AS each")
            cursor.execute(statement.format(sql.Identifier(table)).as_string(cursor.connection))
            found[table] = [json.loads(row) for (row,) in cursor.fetchall()]
        return found

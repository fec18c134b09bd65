"""A second database on the server of the tests, and commands that run on it as an operator runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

ROOT = Path(__file__).parents[3]
#: Seconds after which a command is taken to hang.
PATIENCE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """An installation of its own: a database and a home."""

    name: str
    home: Path

    def manage(self, *arguments: str, key: str = "") -> subprocess.CompletedProcess[str]:
        """``manage.py`` with those arguments; ``key`` instead of the tests' encryption key."""
        given = {"NINEFOLD_ENCRYPTION_KEY": key} if key else {}
        environment = {
            **os.environ,
            **given,
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
            "NINEFOLD_DATABASE_URL": self.url,
            "NINEFOLD_HOME": str(self.home),
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}",
        }
        return subprocess.run(
            [sys.executable, "-m", "django", *arguments],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def python(self, code: str) -> str:
        """What the code prints within the product.

        :raises AssertionError: if it fails.
        """
        done = self.manage("shell", "-v", "0", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @property
    def url(self) -> str:
        given = settings.DATABASES["default"]
        return (
            f"postgresql:///{self.name}?host={quote(str(given['HOST']))}"
            f"&user={given['USER']}&port={given['PORT']}"
        )

    def execute(self, statement: str) -> None:
        """Behind the product's back."""
        with _connected(self.name) as other:
            other.execute(statement)

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        """Every row of every table, in a stable order."""
        return rows_of(self.name)


@contextmanager
def elsewhere(name: str, home: Path) -> Iterator[Elsewhere]:
    """An empty database for the block; each worker of pytest has its own."""
    name = f"{connection.settings_dict['NAME']}_{name}"
    with connection.cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        cursor.execute(f'CREATE DATABASE "{name}"')
    try:
        home.mkdir(parents=True, exist_ok=True)
        yield Elsewhere(name=name, home=home)
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def rows_of(database: str) -> dict[str, list[tuple[object, ...]]]:
    """Of all tables but those that backups leave out (migrations, the log of changes) and empty partitions.

    Which days have a partition depends on the day of the migration.
    """
    with _connected(database) as other:
        found = other.execute(
            "SELECT relname, relispartition FROM pg_class WHERE relkind = 'r'"
            " AND relnamespace = 'public'::regnamespace "
            " AND relname NOT IN ('django_migrations', 'outbox_resource_change')"
        ).fetchall()
        is_partition = {str(name): partition for name, partition in found}
        rows = {
            name: sorted(
                other.execute(
                    sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(name))
                ).fetchall()
            )
            for name in is_partition
        }
        return {name: each for name, each in rows.items() if each or not is_partition[name]}


def _connected(database: str) -> psycopg.Connection[tuple[object, ...]]:
    given = connection.settings_dict
    return psycopg.connect(
        dbname=database, host=given["HOST"], port=given["PORT"] or None, user=given["USER"]
    )

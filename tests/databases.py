"""Databases beside that of the tests, on the same server, and the switch of Django's connection to one of them."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, LiteralString

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql

from apps.models.selectors import artifact_store

#: Filled by migrations, and the feed of changes that triggers write.
TABLES_WITH_FIRST_ROWS = frozenset(
    {
        "auth_permission",
        "django_content_type",
        "django_migrations",
        "outbox_resource_change",
        "quotas_priorityclass",
    }
)


def create_database(name: str, *, template: str) -> None:
    """Create it as a copy of ``template``, which must have no other connections; an older one is dropped."""
    connection.close()
    drop_database(name)
    _execute("CREATE DATABASE {} TEMPLATE {}", name, template)


def drop_database(name: str) -> None:
    _execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def _execute(statement: LiteralString, *names: str) -> None:
    with connection._nodb_cursor() as cursor:
        identifiers = [sql.Identifier(name) for name in names]
        cursor.execute(sql.SQL(statement).format(*identifiers).as_string(cursor.connection))


def connect_to(name: str) -> str:
    """Have Django use that database from now on, in every thread; return the name of the one before."""
    earlier = str(connection.settings_dict["NAME"])
    connection.close()
    use_connection(connections[DEFAULT_DB_ALIAS], database=name)
    return earlier


def use_connection(wrapper: BaseDatabaseWrapper, *, database: str) -> None:
    """Make it Django's connection of this thread; what it or another thread opens leads to that database.

    The one before stays as it is, open or closed.
    """
    connections[DEFAULT_DB_ALIAS] = wrapper
    # All wrappers of an alias share them.
    wrapper.settings_dict["NAME"] = database
    ContentType.objects.clear_cache()
    _clear_caches_by_primary_key()


def _clear_caches_by_primary_key() -> None:
    """Empty caches of this process whose keys are primary keys: in another database they mean other rows."""
    for name, attribute in _caches_by_primary_key(len(sys.modules)):
        cached = getattr(sys.modules[name], attribute, None)
        if isinstance(cached, dict):
            cached.clear()


@functools.lru_cache(maxsize=1)
def _caches_by_primary_key(_modules: int) -> list[tuple[str, str]]:
    """Return the module and the name of each; looked up anew when another module was imported."""
    return [
        (name, attribute)
        for name, module in [*sys.modules.items()]
        if name.startswith("apps.")
        for attribute, kind in getattr(module, "__annotations__", {}).items()
        if str(kind).startswith("dict[int")
    ]


class RecordedRows:
    """What a function wrote into an empty database, to be written again by one statement.

    Rows keep their primary keys: sequences are past them, whatever was rolled back. They keep their row versions
    too, as ``controlplane.persistence.row_versions`` wants it: the same version is the same content.
    """

    _recorded: ClassVar[dict[tuple[str, str, Callable[[], Any]], RecordedRows]] = {}

    def __init__(self, *, result: Any, statements: str, blobs: Sequence[bytes]) -> None:
        self._result = result
        self._statements = statements
        self._blobs = blobs

    @classmethod
    def replayed(cls, create: Callable[[], Any]) -> Any:
        """What ``create`` returned at its first call in this database; its rows and blobs are written again.

        Where there were other rows at each call so far, ``create`` itself is called.
        """
        key = (str(connection.settings_dict["NAME"]), settings.NINEFOLD_ARTIFACTS, create)
        if key in cls._recorded:
            return cls._recorded[key]._replay()
        empty = not _filled_tables()
        result = create()
        if empty:
            store = artifact_store()
            blobs = []
            for stored in store.blobs():
                with store.open(stored.digest) as blob:
                    blobs.append(blob.read())
            cls._recorded[key] = cls(
                result=copy.deepcopy(result),
                statements=_insert_statements(_filled_tables()),
                blobs=blobs,
            )
        return result

    def _replay(self) -> Any:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(self._statements)
        for blob in self._blobs:
            artifact_store().put([blob])
        return copy.deepcopy(self._result)


def _filled_tables() -> list[str]:
    """Tables with rows, but for those with rows from the beginning."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
            " AND relnamespace = 'public'::regnamespace AND NOT relname = ANY(%s)",
            [sorted(TABLES_WITH_FIRST_ROWS)],
        )
        cursor.execute(
            " UNION ALL ".join(
                f"SELECT '{name}' WHERE EXISTS (SELECT FROM \"{name}\")"
                for (name,) in cursor.fetchall()
            )
        )
        return [name for (name,) in cursor.fetchall()]


def _insert_statements(tables: Iterable[str]) -> str:
    """All rows of those tables as one string of SQL."""
    statements = []
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(
                "SELECT format('INSERT INTO %%1$I SELECT * FROM jsonb_populate_recordset(NULL::%%1$I, %%2$L)',"
                f' %s::text, jsonb_agg(to_jsonb(each))) FROM "{table}" AS each',
                [table],
            )
            statements += [statement for (statement,) in cursor.fetchall()]
    return ";\n".join(statements)

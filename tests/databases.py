"""Databases beside that of the tests, on the same server, and the switch of Django's connection to one of them."""

from __future__ import annotations

import functools
import sys
from typing import LiteralString

from django.contrib.contenttypes.models import ContentType
from django.db import connection
from psycopg import sql


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
    connection.settings_dict["NAME"] = name
    ContentType.objects.clear_cache()
    _clear_caches_by_primary_key()
    return earlier


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

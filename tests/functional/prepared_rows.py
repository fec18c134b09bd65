"""Rows that many tests begin with, made once for a worker in a database of their own.

A test that uses a fixture of ``BUILDERS`` runs in that database, in a transaction that is rolled back. The
connection to it stays open between tests: a new one costs PostgreSQL 8 ms and more until its caches are filled.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from apps.models.selectors import catalog
from apps.models.services.catalog import catalog_load
from tests.databases import create_database, drop_database, use_connection
from tests.functional.sample_rows import fill


def _published_catalog() -> None:
    catalog_load(catalog=catalog.published_catalog(), at=timezone.now())


#: What makes the rows, by the name of the fixture.
BUILDERS: Mapping[str, Callable[[], Any]] = {
    "filled": fill,
    "published_catalog": _published_catalog,
}


@dataclass(slots=True)
class PreparedDatabases:
    """Databases of this worker, each made when it is first used."""

    results: dict[str, Any] = field(default_factory=dict)
    _connections: dict[str, BaseDatabaseWrapper] = field(default_factory=dict)

    @contextmanager
    def used(self, name: str) -> Iterator[Any]:
        """Let the default connection lead to the database of that fixture; gives what made the rows."""
        own = connections[DEFAULT_DB_ALIAS]
        own_database = str(own.settings_dict["NAME"])
        database = f"{own_database}_{name}"
        if name not in self._connections:
            create_database(database, template=own_database)
            self._connections[name] = connections.create_connection(DEFAULT_DB_ALIAS)
        use_connection(self._connections[name], database=database)
        try:
            if name not in self.results:
                with transaction.atomic():
                    self.results[name] = BUILDERS[name]()
            yield copy.deepcopy(self.results[name])
        finally:
            use_connection(own, database=own_database)

    def drop(self) -> None:
        for name, prepared in self._connections.items():
            prepared.close()
            drop_database(f"{connection.settings_dict['NAME']}_{name}")

"""Rows that many tests begin with, made once for a worker in a database of their own.

A test that uses a fixture of ``BUILDERS`` runs in that database, in a transaction that is rolled back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from apps.models.selectors import catalog
from apps.models.services.catalog import catalog_load
from tests.databases import connect_to, create_database, drop_database
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

    @contextmanager
    def used(self, name: str) -> Iterator[Any]:
        """Let the default connection lead to the database of that fixture; gives what made the rows."""
        own = str(connection.settings_dict["NAME"])
        database = f"{own}_{name}"
        if name not in self.results:
            create_database(database, template=own)
        connect_to(database)
        try:
            if name not in self.results:
                with transaction.atomic():
                    self.results[name] = BUILDERS[name]()
            yield copy.deepcopy(self.results[name])
        finally:
            connect_to(own)

    def drop(self) -> None:
        for name in self.results:
            drop_database(f"{connection.settings_dict['NAME']}_{name}")

"""What every test of a page or of the API begins with, whatever came before it in the same process."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import translation
from pytest_django import DjangoDbBlocker

from apps.console.web.system_status import lagging_controllers
from apps.models.models import CatalogModel
from tests.functional.prepared_rows import BUILDERS, PreparedDatabases


@pytest.fixture(autouse=True)
def no_lag_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every page shows it to whoever administers, and a process asks for it once in some seconds.

    Which page does so, and so costs a query more, is a matter of time: without this, of which tests ran before and
    of how busy the machine is. Whoever tests the warning itself forgets it first.
    """
    monkeypatch.setattr(lagging_controllers, "_cached", (math.inf, 0))


@pytest.fixture(autouse=True)
def the_language_of_a_request_ends_with_its_test() -> Iterator[None]:
    """A request in 中文 leaves its language active in the thread, and so in the next test."""
    yield
    translation.deactivate()


@pytest.fixture(scope="session")
def prepared_databases(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[PreparedDatabases]:
    databases = PreparedDatabases()
    yield databases
    with django_db_blocker.unblock():
        databases.drop()


@pytest.fixture
def prepared_rows(
    request: pytest.FixtureRequest,
    prepared_databases: PreparedDatabases,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Any]:
    """What made the rows that the test begins with; None where it begins without any."""
    name = next((name for name in BUILDERS if name in request.fixturenames), None)
    if name is None:
        yield None
        return
    with django_db_blocker.unblock(), prepared_databases.used(name) as rows:
        yield rows


# The transaction of a test begins after the database was chosen.
@pytest.fixture
def _django_db_helper(prepared_rows: Any, _django_db_helper: None) -> None:
    """pytest-django's own."""


@pytest.fixture
def published_catalog(prepared_rows: None, db: None) -> None:
    """The catalog is loaded; see ``tests/functional/prepared_rows.py``."""
    # A test may begin with other prepared rows as well.
    if not CatalogModel.objects.exists():
        BUILDERS["published_catalog"]()

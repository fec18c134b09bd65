"""From the first landed migrations, with rows in every table, to now: nothing is lost, everything works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from apps.accounts.models import User
from apps.quotas.models import Entitlement, Queue
from controlplane.domain.quotas.queues import QueueState
from tests.databases import connect_to, create_database, drop_database
from tests.integration.upgrade.first_rows import APPS, contents, fill, first, head, migrate
from tests.integration.upgrade.test_installation import RENAMED_COLUMNS, RENAMED_TABLES

pytestmark = pytest.mark.slow

PAGES = (
    "/",
    "/models",
    "/datasets",
    "/jobs",
    "/deployments",
    "/keys",
    "/fleet",
    "/profile",
    "/storage",
    "/storage?tab=biggest",
    "/storage?tab=retention",
    "/api/v1/jobs",
    "/api/v1/model-versions",
    "/api/v1/dataset-versions",
    "/api/v1/deployments",
    "/api/v1/storage",
)

#: Columns whose content was carried over into others, by table; what became of it is looked at by itself.
CARRIED_OVER = {"quotas_queue": {"caps", "open"}}


@pytest.fixture
def first_landed(transactional_db: None) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """A database of its own, as the first version left it."""
    name = f"{connection.settings_dict['NAME']}_first"
    create_database(name, template="template0")
    earlier = connect_to(name)
    try:
        yield fill(migrate(first()))
    finally:
        connect_to(earlier)
        drop_database(name)


def test_every_row_of_the_first_version_is_there_after_the_upgrade(
    first_landed: dict[str, list[dict[str, Any]]], client: Client
) -> None:
    assert all(first_landed.values()), "every table of the first version has rows"
    call_command("migrate", verbosity=0)
    now = contents(MigrationExecutor(connection).loader.project_state(head()).apps)
    for earlier, rows in first_landed.items():
        table = RENAMED_TABLES.get(earlier, earlier)
        assert len(now[table]) >= len(rows), f"rows of {table} are lost"
        renamed = RENAMED_COLUMNS.get(table, {})
        by_key = {row.get("id", next(iter(row.values()))): row for row in now[table]}
        for row in rows:
            found = by_key[row.get("id", next(iter(row.values())))]
            columns = row.keys() - CARRIED_OVER.get(table, set())
            names = {name: renamed.get(name, name) for name in columns}
            lost = {name: row[name] for name in columns if found.get(names[name]) != row[name]}
            assert lost == {}, f"{table} no longer holds what it held"
    for queue in first_landed["quotas_queue"]:
        caps = Entitlement.objects.filter(queue=queue["id"]).values_list("chip", "cap")
        assert dict(caps) == queue["caps"]
        state = QueueState.OPEN if queue["open"] else QueueState.CLOSED
        assert Queue.objects.get(pk=queue["id"]).state == state
    client.force_login(User.objects.get(username="ada"))
    for page in PAGES:
        assert client.get(page).status_code == 200, page


def test_every_app_that_began_with_the_first_version_is_upgraded_here() -> None:
    """Apps that came later have no rows of that time; one that is missing here would go untested."""
    graph = MigrationExecutor(None).loader.graph
    roots = {app for app, name in graph.root_nodes() if (app, name) in graph.nodes}
    own = {app for app in roots if _is_ours(app)}
    assert own - set(APPS) <= {"monitoring", "notifications", "telemetry", "workflows"}


def _is_ours(app: str) -> bool:
    from django.apps import apps  # noqa: PLC0415

    return apps.get_app_config(app).name.startswith(("apps.", "controlplane."))

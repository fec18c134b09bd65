"""The upgraded installation, and the machine on which its work runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import override_settings
from django.utils import timezone
from pytest_django import DjangoDbBlocker, Settings

from apps.accounts.models import User
from apps.fleet.models import Cluster
from tests.databases import connect_to, drop_database
from tests.integration.upgrade import old_database
from tests.integration.upgrade.local_machine import Machine
from tests.integration.upgrade.old_database import Upgraded
from tests.integration.upgrade.recorded import (
    DUMPED_AT,
    INSTALLATION,
    restore_simulated_cluster,
)
from tests.integration.upgrade.replaying import Clock

_SECRETS = INSTALLATION["secrets"]
_OVERRIDES = {
    "SECRET_KEY": _SECRETS["secret_key"],
    "NINEFOLD_ENCRYPTION_KEYS": [_SECRETS["encryption_key"]],
    "NINEFOLD_GATEWAY_TOKEN": _SECRETS["gateway_token"],
}


@pytest.fixture(scope="session")
def upgraded(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Upgraded]:
    """The dump, loaded and migrated once for all tests of this process."""
    home = tmp_path_factory.mktemp("upgraded")
    with django_db_blocker.unblock(), override_settings(**_OVERRIDES, NINEFOLD_HOME=home):
        database = old_database.create(home)
    yield database
    with django_db_blocker.unblock():
        drop_database(database.name)


@pytest.fixture(scope="module")
def on_upgraded_database(
    upgraded: Upgraded, django_db_blocker: DjangoDbBlocker
) -> Iterator[Upgraded]:
    with django_db_blocker.unblock():
        earlier = connect_to(upgraded.name)
    yield upgraded
    with django_db_blocker.unblock():
        connect_to(earlier)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of the product from here on, at first a second after the dump."""
    clock = Clock(at=DUMPED_AT + timedelta(seconds=1))
    monkeypatch.setattr(timezone, "now", clock.now)
    return clock


@pytest.fixture
def installation(
    on_upgraded_database: Upgraded,
    db: None,
    settings: Settings,
    clock: Clock,
    tmp_path: Path,
) -> Upgraded:
    """The upgraded installation with its secrets. What a test changes in its database is rolled back."""
    for name, value in _OVERRIDES.items():
        setattr(settings, name, value)
    settings.NINEFOLD_HOME = tmp_path
    # The only node of the local cluster bears the name of the machine, and has a card for each of its cores.
    Cluster.objects.filter(kind="local").update(options={"node": "machine-1", "cards": 4})
    simulated = Cluster.objects.get(kind="simulated")
    simulated.options["home"] = str(tmp_path / "simulated")
    simulated.save(update_fields=["options"])
    restore_simulated_cluster(tmp_path / "simulated")
    return on_upgraded_database


@pytest.fixture
def administrator(installation: Upgraded) -> User:
    return User.objects.get(username="admin")


@pytest.fixture
def machine(installation: Upgraded, tmp_path: Path) -> Iterator[Machine]:
    """The running launches of the dump: their folders, and a process for the supervisor of each."""
    machine = Machine(home=tmp_path)
    try:
        for launch in (INSTALLATION["running"]["launch"], INSTALLATION["deployment"]["launch"]):
            machine.supervise(launch)
        yield machine
    finally:
        machine.close()

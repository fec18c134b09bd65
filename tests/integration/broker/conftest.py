"""A product without its web: a broker, a worker, a beat and the local cluster."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from apps.accounts import services as accounts
from apps.accounts.models import Team, User
from apps.fleet import reconcilers as fleet_reconcilers
from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.quotas.models import Queue
from controlplane.domain.common.permissions import TeamRole
from controlplane.ports import adapter_registry
from tests.contract.cluster_harness import ended, open_folder
from tests.integration.broker import plain_scripts
from tests.integration.broker.brokers import Broker, FolderBroker, RedisBroker
from tests.integration.broker.controllers import Controller, configured
from tests.integration.broker.products import Product


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that jobs' accounts can pass through."""
    folder = open_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def redis_broker(tmp_path: Path) -> Iterator[RedisBroker]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not on PATH")
    broker = RedisBroker(tmp_path, program=program)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


@pytest.fixture
def folder_broker(home: Path) -> FolderBroker:
    return FolderBroker(home)


@pytest.fixture(params=["folder_broker", pytest.param("redis_broker", marks=pytest.mark.redis)])
def broker(request: pytest.FixtureRequest) -> Broker:
    chosen: Broker = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def product(
    broker: Broker,
    home: Path,
    tmp_path: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    transactional_db: None,
    live_server: LiveServer,
) -> Iterator[Product]:
    """One team, one machine of two cards; the controllers wait to be started."""
    plugins = tmp_path / "plugins"
    plain_scripts.install(plugins)
    monkeypatch.syspath_prepend(plugins)
    # A process knows its plug-ins for good; this one gets another while it runs.
    adapter_registry.engine_names.cache_clear()
    settings.NINEFOLD_HOME = home
    configuration = configured(
        home,
        broker_url=broker.url,
        plugins=plugins,
        variables={
            "NINEFOLD_CONTROL_URL": live_server.url,
            "NINEFOLD_SECRET_KEY": settings.SECRET_KEY,
            "NINEFOLD_ENCRYPTION_KEY": ",".join(settings.NINEFOLD_ENCRYPTION_KEYS),
            "NINEFOLD_GATEWAY_TOKEN": settings.NINEFOLD_GATEWAY_TOKEN,
        },
    )
    url = database_url()
    started = Product(
        engineer=User.objects.create(username="mei"),
        team=Team.objects.create(name="Addresses", slug="addresses"),
        queue=Queue.objects.create(name="default"),
        broker=broker,
        worker=Controller("worker", configuration=configuration, database_url=url),
        beat=Controller("beat", configuration=configuration, database_url=url),
        gate=home / "gate",
    )
    accounts.membership_set(
        team=started.team, user=started.engineer, roles=frozenset({TeamRole.ENGINEER}), actor=None
    )
    cluster = Cluster.objects.create(name="here", kind="local", options={"cards": 2})
    fleet_reconcilers.inventories_sync(at=timezone.now())
    yield started
    # Before the rows go: emptying tables under running loops would wait for them.
    started.beat.kill()
    started.worker.kill()
    adapter = fleet.cluster_adapter(cluster)
    for name in adapter.names():
        adapter.stop(name, grace=timedelta())
        ended(adapter, name)
    adapter_registry.engine_names.cache_clear()


def database_url() -> str:
    """Where the rows of this test are: the run's server, and the database that pytest-django made."""
    server = urlsplit(os.environ["NINEFOLD_DATABASE_URL"])
    return server._replace(path="/" + quote(connection.settings_dict["NAME"])).geturl()

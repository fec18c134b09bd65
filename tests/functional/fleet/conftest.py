"""A company with a cluster in memory that stands for one over the network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from django.conf import settings
from django.test import Client

from apps.accounts.models import User
from apps.fleet import selectors
from apps.fleet.models import Cluster
from controlplane.adapters.fakes.clusters import FakeCluster
from tests import factories


@pytest.fixture(autouse=True)
def fakes_stand_for_clusters_over_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """With adapters of its own for each test: what one was told must not be heard by the next."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(selectors, "REMOTE_KINDS", ("fake",))
    selectors._cached_adapter.cache_clear()
    yield
    selectors._cached_adapter.cache_clear()


@pytest.fixture
def root(db: None) -> User:
    return factories.user("root", admin=True)


@pytest.fixture
def browser(client: Client, root: User) -> Client:
    """Of an administrator of the company."""
    client.force_login(root)
    return client


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.cluster(name="east", kind="fake", cards=4)


@pytest.fixture
def fake(cluster: Cluster) -> FakeCluster:
    return cast(FakeCluster, selectors.cluster_adapter(cluster))


def text(browser: Client, path: str, **headers: str) -> str:
    """The page at that address, which has to be there."""
    answer = browser.get(path, headers=headers)
    assert answer.status_code == 200, answer.content[:400]
    return str(answer.content.decode())

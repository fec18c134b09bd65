"""One process follows the clusters; what it hears reaches the others as news, and its death is survived."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from django.db import connection
from django.utils import timezone

from apps.fleet.management.commands import watch_clusters
from apps.fleet.management.commands.watch_clusters import IntervalThrottle, clusters_watch
from apps.fleet.models import Cluster
from apps.fleet.services import clusters as services
from apps.fleet.services.clusters import LEASE
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.outbox.models import OutboxMessage
from controlplane.persistence.leases import LeaderLease, hold_leader_lease, lease_holder
from controlplane.ports import adapter_registry

WITHIN = 120.0
ROOT = Path(__file__).parents[3]


class Speaking(FakeCluster):
    """A cluster that says what a test tells it to."""

    #: Those that are watched now, by the name in their options.
    watched: dict[str, Speaking] = {}  # noqa: RUF012 - a test's stage
    begun = 0

    def __init__(self, name: str = "", region: str = "") -> None:
        super().__init__()
        self.name = name

    def watch(
        self,
        *,
        launches_changed: Callable[[frozenset[str]], None],
        nodes_changed: Callable[[], None],
        alive: Callable[[], None],
        stopping: threading.Event,
    ) -> None:
        self.launches_changed, self.nodes_changed, self.alive = (
            launches_changed,
            nodes_changed,
            alive,
        )
        Speaking.begun += 1
        Speaking.watched[self.name] = self
        self.broken = threading.Event()
        while not stopping.wait(0.02):
            if self.broken.is_set():
                raise RuntimeError("nobody foresaw this")
        if Speaking.watched.get(self.name) is self:
            del Speaking.watched[self.name]


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """Clusters of kind ``speaking``, and a watcher that looks often."""
    provided = adapter_registry._load_plugin

    def load(group: str, name: str) -> object:
        return (
            Speaking
            if (group, name) == ("ninefold.clusters", "speaking")
            else provided(group, name)
        )

    monkeypatch.setattr(adapter_registry, "_load_plugin", load)
    monkeypatch.setattr(watch_clusters, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(Speaking, "watched", {})
    monkeypatch.setattr(Speaking, "begun", 0)


Start = Callable[[], None]


@pytest.fixture
def watcher_later(kinds: None) -> Iterator[Start]:
    """Sets the watcher to work in a thread, once."""
    stopping = threading.Event()
    thread = threading.Thread(target=clusters_watch, kwargs={"stopping": stopping})
    try:
        yield thread.start
    finally:
        stopping.set()
        thread.join(WITHIN)
        assert not thread.is_alive()


@pytest.fixture
def watcher(watcher_later: Start) -> None:
    """The watcher at work."""
    watcher_later()


def registered(name: str, *, kind: str = "speaking") -> Cluster:
    return Cluster.objects.create(name=name, kind=kind, options={"name": name})


def until(condition: Callable[[], bool], *, what: str, within: float = WITHIN) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + within, f"never: {what}"
        time.sleep(0.02)
    return time.monotonic() - began


def speaking(name: str) -> Speaking:
    until(lambda: name in Speaking.watched, what=f"{name} is watched")
    return Speaking.watched[name]


def payloads(topic: str) -> list[dict[str, object]]:
    return list(
        OutboxMessage.objects.filter(topic=topic).order_by("id").values_list("payload", flat=True)
    )


def test_changed_launches_are_published_in_batches(watcher: None) -> None:
    cluster = registered("east")
    east = speaking("east")

    east.launches_changed(frozenset(f"attempt-{number:03}" for number in range(250)))
    assert [len(piece["names"]) for piece in payloads("launches.observed")] == [100, 100, 50]  # type: ignore[arg-type]

    east.nodes_changed()
    assert payloads("cluster.changed") == [{"cluster_uid": cluster.uid}]


def test_node_changes_are_throttled_and_the_last_is_not_lost(
    watcher: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_clusters, "INVENTORY_EVERY", 0.6)
    registered("east")
    east = speaking("east")
    for _ in range(50):
        east.nodes_changed()
    assert len(payloads("cluster.changed")) == 1
    until(lambda: len(payloads("cluster.changed")) == 2, what="the one that was put off")


def test_heartbeats_are_recorded_at_a_limited_rate(watcher: None) -> None:
    cluster = registered("east")
    east = speaking("east")
    east.alive()
    cluster.refresh_from_db()
    first = cluster.reachable_at
    assert first is not None
    east.alive()
    cluster.refresh_from_db()
    assert cluster.reachable_at == first


def test_added_changed_and_removed_clusters_are_watched_within_seconds(
    watcher: None,
) -> None:
    east = registered("east")
    west = registered("west")
    registered("quiet", kind="fake")
    first = speaking("east")
    speaking("west")
    assert set(Speaking.watched) == {"east", "west"}

    west.removed_at = timezone.now()
    west.save()
    until(lambda: set(Speaking.watched) == {"east"}, what="the one that was removed is let go")

    east.options = {"name": "east", "region": "2"}
    east.save()
    until(lambda: Speaking.watched.get("east") not in (None, first), what="a new connection")
    assert Speaking.begun == 3


def test_a_failed_watch_is_restarted(watcher: None) -> None:
    registered("east")
    first = speaking("east")
    first.broken.set()
    until(lambda: Speaking.begun == 2, what="a second watch")


def test_a_heartbeat_timeout_is_recorded_and_cleared_by_an_inventory(
    watcher: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_clusters, "HEARTBEAT_TIMEOUT", 0.3)
    cluster = registered("east")
    east = speaking("east")
    until(
        lambda: Cluster.objects.get(pk=cluster.pk).error == services.UNRESPONSIVE,
        what="the word of it",
    )
    assert payloads("cluster.changed") == []
    monkeypatch.setattr(watch_clusters, "HEARTBEAT_TIMEOUT", 60.0)
    east.alive()
    assert payloads("cluster.changed") == [{"cluster_uid": cluster.uid}]


@pytest.mark.django_db
def test_a_heartbeat_timeout_does_not_replace_another_trouble() -> None:
    cluster = Cluster.objects.create(name="east", kind="fake", error="the credential has expired")
    services.cluster_unresponsive_record(cluster=cluster)
    cluster.refresh_from_db()
    assert cluster.error == "the credential has expired"


def test_a_standby_takes_over_the_lease(kinds: None) -> None:
    registered("east")
    stopping = threading.Event()
    thread = threading.Thread(target=clusters_watch, kwargs={"stopping": stopping})
    with hold_leader_lease(LEASE, ttl=timedelta(minutes=1)) as held:
        assert held is not None
        thread.start()
        time.sleep(0.5)
        assert Speaking.watched == {}
    speaking("east")
    stopping.set()
    thread.join(WITHIN)
    assert Speaking.watched == {}


def test_a_leader_without_its_lease_stops(watcher: None, monkeypatch: pytest.MonkeyPatch) -> None:
    registered("east")
    speaking("east")
    monkeypatch.setattr(LeaderLease, "renew", lambda self, *, ttl: False)
    until(lambda: Speaking.watched == {}, what="it lets go")
    monkeypatch.undo()


@pytest.mark.parametrize("times", [1, 3])
def test_a_throttled_action_stays_pending(times: int) -> None:
    now = 100.0
    seldom = IntervalThrottle(every=5.0, clock=lambda: now)
    assert seldom.is_due()
    assert not seldom.is_pending()
    now += 1
    assert not any(seldom.is_due() for _ in range(times))
    assert not seldom.is_pending()
    now += 5
    assert seldom.is_pending()
    assert not seldom.is_pending()


def process() -> subprocess.Popen[bytes]:
    """A watcher as the product runs it, on the database of this test."""
    server = urlsplit(os.environ["NINEFOLD_DATABASE_URL"])
    url = server._replace(path="/" + quote(connection.settings_dict["NAME"])).geturl()
    return subprocess.Popen(
        [sys.executable, "manage.py", "watch_clusters"],
        cwd=ROOT,
        env={**os.environ, "NINEFOLD_DATABASE_URL": url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def holder() -> str:
    """The number of the process that leads; empty if none does."""
    return lease_holder(LEASE).rpartition(":")[2]


@pytest.mark.product
def test_a_standby_takes_over_from_a_killed_leader(watcher_later: Start) -> None:
    registered("east")
    first = process()
    try:
        until(lambda: holder() == str(first.pid), what="the first leads")
        watcher_later()
        first.send_signal(signal.SIGKILL)
        first.wait(WITHIN)
        took = until(lambda: "east" in Speaking.watched, what="the second leads")
        assert took < watch_clusters.LEASE_LASTS.total_seconds() + 1
        assert holder() == str(os.getpid())
    finally:
        first.kill()
        first.wait(WITHIN)


@pytest.mark.product
def test_a_stopped_leader_releases_its_lease(transactional_db: None) -> None:
    only = process()
    try:
        until(lambda: holder() == str(only.pid), what="it leads")
        only.terminate()
        assert only.wait(WITHIN) == 0
        assert holder() == ""
    finally:
        only.kill()
        only.wait(WITHIN)

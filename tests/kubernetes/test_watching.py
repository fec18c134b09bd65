"""A real API server is followed: news within a second, and nothing is missed however it falters."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
import requests

from apps.fleet.management.commands.watch_clusters import clusters_watch
from apps.fleet.models import Cluster
from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.api import KubernetesApi
from controlplane.adapters.clusters.kubernetes.kubeconfig import from_kubeconfig
from controlplane.adapters.clusters.kubernetes.watcher import Watcher, WatchTimeouts
from controlplane.outbox.models import OutboxMessage
from controlplane.persistence.encryption import encrypt
from tests.kubernetes import clusters, processes
from tests.kubernetes.control_planes import ControlPlane

pytestmark = pytest.mark.kubernetes

WITHIN = 120.0
AT_ONCE = 1.0
PODS = "/api/v1/namespaces/default/pods"
SERVER = "kube-apiserver"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and the API server alone: nothing is to run."""
    try:
        programs = clusters.programs(say=print)
    except clusters.NoCluster as reason:
        pytest.skip(str(reason))
    control_plane = clusters.make(tmp_path_factory.mktemp("k8s"), programs=programs).control_plane
    try:
        control_plane.start_etcd()
        control_plane.start_api_server(advertised=clusters._own_address())
        account = {"metadata": {"name": "default"}}
        until(
            lambda: (
                control_plane.request(
                    "POST", "/api/v1/namespaces/default/serviceaccounts", body=account
                ).status_code
                in (201, 409)
            ),
            what="the namespace",
        )
        yield control_plane
    finally:
        control_plane.stop()


class RecordedActivity:
    """A watcher of the real server, and what it told when."""

    def __init__(self, plane: ControlPlane, *, timeouts: WatchTimeouts) -> None:
        access = from_kubeconfig((plane.folder / "admin.kubeconfig").read_text())
        self.watcher = Watcher(KubernetesApi(access), installation="east", timeouts=timeouts)
        self.launches: dict[str, float] = {}
        self.nodes = 0
        self.alive = 0
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        until(self._follows, what="all three are watched")

    def _run(self) -> None:
        self.watcher.watch(
            launches_changed=self._launches_changed,
            nodes_changed=self._nodes_changed,
            alive=self._alive,
            stopping=self.stopping,
        )

    def _follows(self) -> bool:
        # Asked for is not open yet: a server that is frozen in between leaves it waiting for the first byte.
        return all(reflector._stream is not None for reflector in self.watcher._reflectors)

    def _launches_changed(self, changed: frozenset[str]) -> None:
        self.launches |= dict.fromkeys(changed, time.monotonic())

    def _nodes_changed(self) -> None:
        self.nodes += 1

    def _alive(self) -> None:
        self.alive += 1

    def of(self, launch: str, *, within: float = WITHIN) -> float:
        """When it was told."""
        until(lambda: launch in self.launches, what=launch, within=within)
        return self.launches.pop(launch)

    def stop(self) -> float:
        """Seconds until it had stopped."""
        began = time.monotonic()
        self.stopping.set()
        self._thread.join(WITHIN)
        assert not self._thread.is_alive()
        return time.monotonic() - began


@pytest.fixture
def on_activity(plane: ControlPlane) -> Iterator[RecordedActivity]:
    recorded = RecordedActivity(plane, timeouts=WatchTimeouts(answer=2.0, idle=6.0, heartbeat=2.0))
    yield recorded
    recorded.stop()


def until(condition: Callable[[], bool], *, what: str, within: float = WITHIN) -> None:
    limit = time.monotonic() + within
    while not condition():
        assert time.monotonic() < limit, f"never: {what}"
        time.sleep(0.01)


def create(plane: ControlPlane, launch: str, *, installation: str = "east") -> float:
    """A pod of that Launch, without a node; when it had been made."""
    labels = object_names.owner_labels(installation=installation, launch=launch)
    body: dict[str, Any] = {
        "metadata": {"name": launch, "labels": labels},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "none"}],
        },
    }
    answer = plane.request("POST", PODS, body=body)
    assert answer.status_code == 201, answer.text
    return time.monotonic()


def bind(plane: ControlPlane, pod: str, *, node: str) -> None:
    body = {
        "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    answer = plane.request("POST", f"{PODS}/{pod}/binding", body=body)
    assert answer.status_code == 201, answer.text


def delete(plane: ControlPlane, launch: str) -> float:
    plane.request("DELETE", f"{PODS}/{launch}?gracePeriodSeconds=0").raise_for_status()
    return time.monotonic()


def server(plane: ControlPlane) -> psutil.Process:
    found = processes.running(SERVER, folder=plane.folder)
    assert found is not None
    return found


def test_what_happens_to_a_pod_is_told_within_a_second(
    plane: ControlPlane, on_activity: RecordedActivity
) -> None:
    for number in range(5):
        launch = f"attempt-{number}"
        created_at = create(plane, launch)
        assert on_activity.of(launch) - created_at < AT_ONCE
        gone = delete(plane, launch)
        assert on_activity.of(launch) - gone < AT_ONCE
    create(plane, "attempt-of-others", installation="west")
    create(plane, "attempt-last")
    on_activity.of("attempt-last")
    assert "attempt-of-others" not in on_activity.launches
    delete(plane, "attempt-last")
    delete(plane, "attempt-of-others")


def test_a_card_that_is_lost_and_a_pod_of_others_that_takes_some_change_the_nodes(
    plane: ControlPlane, on_activity: RecordedActivity
) -> None:
    path = "/api/v1/nodes"
    plane.request("POST", path, body={"metadata": {"name": "n1"}}).raise_for_status()
    until(lambda: on_activity.nodes > 0, what="the node", within=AT_ONCE)
    counted = on_activity.nodes
    cards = {"status": {"allocatable": {"nvidia.com/gpu": "8"}}}
    merge = "application/merge-patch+json"
    plane.request("PATCH", f"{path}/n1/status", body=cards, kind=merge).raise_for_status()
    until(lambda: on_activity.nodes > counted, what="the cards", within=AT_ONCE)
    counted = on_activity.nodes

    create(plane, "theirs", installation="west")
    bind(plane, "theirs", node="n1")
    until(lambda: on_activity.nodes > counted, what="a pod of others on the node", within=AT_ONCE)
    counted = on_activity.nodes
    ended = {"status": {"phase": "Succeeded"}}
    plane.request("PATCH", f"{PODS}/theirs/status", body=ended, kind=merge).raise_for_status()
    until(lambda: on_activity.nodes > counted, what="its end", within=AT_ONCE)
    delete(plane, "theirs")
    plane.request("DELETE", f"{path}/n1").raise_for_status()


@pytest.fixture
def registered(plane: ControlPlane, transactional_db: None) -> Iterator[Cluster]:
    """The same server as a cluster of the product, which follows it."""
    kubeconfig = (plane.folder / "admin.kubeconfig").read_bytes()
    cluster = Cluster.objects.create(name="east", kind="kubernetes", kubeconfig=encrypt(kubeconfig))
    stopping = threading.Event()
    thread = threading.Thread(target=clusters_watch, kwargs={"stopping": stopping})
    thread.start()
    try:
        yield cluster
    finally:
        stopping.set()
        thread.join(WITHIN)
        assert not thread.is_alive()


def test_a_registered_cluster_is_followed_and_its_news_go_out(
    plane: ControlPlane, registered: Cluster
) -> None:
    def announced(launch: str) -> bool:
        messages = OutboxMessage.objects.filter(topic="launches.observed")
        return any(launch in one.payload["names"] for one in messages)

    def reached() -> bool:
        return Cluster.objects.get(pk=registered.pk).reachable_at is not None

    until(reached, what="a sign of life")
    create(plane, "attempt-told", installation=registered.uid)
    until(lambda: announced("attempt-told"), what="the news", within=2 * AT_ONCE)
    delete(plane, "attempt-told")
    plane.request("POST", "/api/v1/nodes", body={"metadata": {"name": "n2"}}).raise_for_status()
    stock = OutboxMessage.objects.filter(
        topic="cluster.changed", payload={"cluster_uid": registered.uid}
    )
    until(stock.exists, what="a changed node")
    plane.request("DELETE", "/api/v1/nodes/n2").raise_for_status()


def test_a_server_that_is_frozen_for_a_while_is_followed_again(
    plane: ControlPlane, on_activity: RecordedActivity
) -> None:
    frozen = server(plane)
    frozen.suspend()
    try:
        until(
            lambda: all(one.last_error for one in on_activity.watcher.state()), what="it is noticed"
        )
    finally:
        frozen.resume()
    create(plane, "attempt-thawed")
    on_activity.of("attempt-thawed")
    delete(plane, "attempt-thawed")


def test_it_stops_at_once_while_the_server_is_frozen(plane: ControlPlane) -> None:
    on_activity = RecordedActivity(plane, timeouts=WatchTimeouts())
    frozen = server(plane)
    frozen.suspend()
    try:
        # Far below the minute after which a silent connection is given up.
        assert on_activity.stop() < 5 * AT_ONCE
        # The reads themselves were ended, not left behind.
        until(
            lambda: not [one for one in threading.enumerate() if one.name == "watch"],
            what="the last read ends",
            within=5 * AT_ONCE,
        )
    finally:
        frozen.resume()


def test_nothing_that_changed_while_the_server_was_killed_and_back_is_missed(
    plane: ControlPlane, on_activity: RecordedActivity
) -> None:
    create(plane, "attempt-before")
    on_activity.of("attempt-before")
    command = server(plane).cmdline()
    processes.stop(SERVER, folder=plane.folder, hard=True)
    until(lambda: all(one.errors for one in on_activity.watcher.state()), what="it is noticed")

    processes.start(SERVER, command, folder=plane.folder)
    processes.until(plane.ready, name=SERVER, folder=plane.folder, within=WITHIN)
    delete(plane, "attempt-before")
    create(plane, "attempt-after")
    on_activity.of("attempt-before")
    on_activity.of("attempt-after")
    delete(plane, "attempt-after")


def test_versions_that_etcd_has_forgotten_are_listed_anew(
    plane: ControlPlane, on_activity: RecordedActivity
) -> None:
    """The server is stopped, its store changes and is compacted, and it comes back with a new memory."""
    create(plane, "attempt-old")
    on_activity.of("attempt-old")
    lists = on_activity.watcher.state()[0].lists
    command = server(plane).cmdline()
    processes.stop(SERVER, folder=plane.folder, hard=True)
    remove_from_store(plane, "attempt-old")
    processes.start(SERVER, command, folder=plane.folder)
    processes.until(plane.ready, name=SERVER, folder=plane.folder, within=WITHIN)
    on_activity.of("attempt-old")
    assert on_activity.watcher.state()[0].lists > lists


def remove_from_store(plane: ControlPlane, pod: str) -> None:
    """Behind the server's back, so that no event ever tells of it; a later change takes the version further."""
    address = f"http://127.0.0.1:{plane.etcd_ports[0]}/v3/kv"

    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    key = {"key": encoded(f"/registry/pods/default/{pod}")}
    requests.post(f"{address}/deleterange", json=key, timeout=5).raise_for_status()
    other = {"key": encoded("/ninefold-test"), "value": encoded("x")}
    answer = requests.post(f"{address}/put", json=other, timeout=5)
    answer.raise_for_status()
    revision = answer.json()["header"]["revision"]
    compaction = {"revision": revision}
    requests.post(f"{address}/compaction", json=compaction, timeout=5).raise_for_status()

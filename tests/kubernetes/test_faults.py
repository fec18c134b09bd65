"""What goes wrong on a real cluster: nothing is run twice, nothing is lost, and people read why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import requests

from controlplane.adapters.clusters.kubernetes import KubernetesCluster
from controlplane.adapters.clusters.kubernetes.api import KubernetesApi
from controlplane.ports.clusters import (
    ClusterUnavailable,
    ExitCause,
    LaunchRefused,
    ObservedReplica,
    ReplicaPhase,
)
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole, ReadinessProbe
from tests.contract.cluster_harness import python_role
from tests.contract.waiting import until
from tests.kubernetes import clusters, images
from tests.kubernetes.clusters import NODE, LiveCluster

pytestmark = pytest.mark.kubernetes

WITHIN = 120.0
#: A pod without containers, as without an image, was seen to end after 29 s, 32 s and, beside engines, more than
#: 60: kubelets collect such sandboxes once a minute.
ENDED_WITHIN = 180.0
SPACE = "/api/v1/namespaces/ninefold-maps"


#: Answers every request with 200, until one for ``/hang``, which it never answers and none after it.
HANGING_SERVER = """
import http.server, sys, time
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/hang":
            time.sleep(600)
        self.send_response(200); self.end_headers()
http.server.HTTPServer(("0.0.0.0", int(sys.argv[1])), Answer).serve_forever()
"""


def sleeper(name: str, *, code: str = "import time; time.sleep(600)", count: int = 1) -> Launch:
    role = LaunchRole(
        name="main",
        argv=("{python}", "-c", code),
        placements=tuple(LaunchPlacement(node=NODE) for _ in range(count)),
    )
    return Launch(name=name, roles=(role,), labels={"team": "maps"}, secrets={"KEY": "a secret"})


def cluster_of(live: LiveCluster, **options: Any) -> KubernetesCluster:
    return KubernetesCluster(
        installation="faults",
        kubeconfig=live.kubeconfig.read_text(),
        **{**images.PROFILE, "cpu_cards": 2, **options},
    )


@pytest.fixture
def cluster(live_cluster: LiveCluster) -> Iterator[KubernetesCluster]:
    adapter = cluster_of(live_cluster)
    yield adapter
    for name in adapter.names():
        adapter.stop(name, grace=timedelta(0))
        until(partial(has_ended, adapter, name), within=ENDED_WITHIN, what=f"{name} ends")
        adapter.remove(name)


def has_ended(cluster: KubernetesCluster, name: str) -> bool:
    return cluster.observe([name])[name].ended


def first(cluster: KubernetesCluster, name: str) -> ObservedReplica:
    return cluster.observe([name])[name].replicas[0]


def runs(cluster: KubernetesCluster, name: str) -> ObservedReplica:
    return in_phase(cluster, name, ReplicaPhase.RUNNING)


def in_phase(cluster: KubernetesCluster, name: str, phase: ReplicaPhase) -> ObservedReplica:
    def reached() -> ObservedReplica | None:
        seen = first(cluster, name)
        return seen if seen.phase is phase else None

    return until(reached, within=WITHIN, what=f"{name} is {phase}")


def saying(cluster: KubernetesCluster, name: str, message: str) -> ObservedReplica:
    """The replica, as soon as what is told of it begins so."""

    def replica_with_message() -> ObservedReplica | None:
        seen = first(cluster, name)
        return seen if seen.message.startswith(message) else None

    return until(replica_with_message, within=WITHIN, what=f"{name}: {message} …")


def pods(live: LiveCluster, name: str) -> list[Mapping[str, Any]]:
    answer = live.control_plane.request(
        "GET", f"{SPACE}/pods?labelSelector=ninefold.io/launch={name}"
    )
    found: list[Mapping[str, Any]] = answer.json()["items"]
    return found


@contextmanager
def quota(live: LiveCluster, name: str, *, pods: int) -> Iterator[None]:
    """An administrator of the cluster allows the team's namespace so many pods."""
    plane, path = live.control_plane, f"{SPACE}/resourcequotas"
    limit = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": {"pods": str(pods)}},
    }
    plane.request("POST", path, body=limit)
    try:
        until(
            lambda: plane.request("GET", f"{path}/{name}").json()["status"].get("used"),
            what="the quota is counted",
        )
        yield
    finally:
        plane.request("DELETE", f"{path}/{name}")


class Killed(BaseException):
    """The worker is gone, in the middle of a call."""


@pytest.mark.parametrize("calls", range(5))
def test_a_worker_that_dies_between_two_objects_leaves_one_launch_after_the_next_turn(
    live_cluster: LiveCluster,
    cluster: KubernetesCluster,
    monkeypatch: pytest.MonkeyPatch,
    calls: int,
) -> None:
    launch = sleeper(f"dies-{calls}", count=2)
    create = KubernetesApi.create
    paths: list[str] = []

    def dying(self: KubernetesApi, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if len(paths) == calls:
            raise Killed
        paths.append(path)
        return create(self, path, body)

    with monkeypatch.context() as patch:
        patch.setattr(KubernetesApi, "create", dying)
        with pytest.raises(Killed):
            cluster_of(live_cluster).launch(launch)
    before = {pod["metadata"]["uid"] for pod in pods(live_cluster, launch.name)}
    cluster.launch(launch)
    after = {pod["metadata"]["uid"] for pod in pods(live_cluster, launch.name)}
    assert before <= after
    assert len(after) == 2
    runs(cluster, launch.name)


def test_a_pod_that_somebody_deletes_ends_with_that_reason_and_is_not_made_again(
    live_cluster: LiveCluster, cluster: KubernetesCluster
) -> None:
    launch = sleeper("deleted")
    cluster.launch(launch)
    runs(cluster, launch.name)
    live_cluster.control_plane.request("DELETE", f"{SPACE}/pods/deleted-main-0")
    end = in_phase(cluster, launch.name, ReplicaPhase.EXITED)
    assert end.cause is ExitCause.STOPPED
    assert end.message == "the pod was deleted from the cluster"
    cluster.launch(launch)
    assert first(cluster, launch.name).ended


def test_an_engine_that_hangs_is_not_ready_and_then_killed_by_the_kubelet(
    cluster: KubernetesCluster,
) -> None:
    probe = ReadinessProbe(
        port="http",
        path="/health",
        period=timedelta(seconds=2),
        timeout=timedelta(seconds=2),
        failure_threshold=10,
    )
    role = python_role(HANGING_SERVER, ports=("http",), probe=probe)
    role = replace(role, argv=(*role.argv, "{port:http}"))
    cluster.launch(Launch(name="hangs", roles=(role,), labels={"team": "maps"}))
    runs(cluster, "hangs")
    endpoint = cluster.endpoint("hangs", role="main", index=0, port="http")
    assert endpoint is not None
    with pytest.raises(requests.ReadTimeout):
        requests.get(f"{endpoint.url}/hang", timeout=1)
    unready = in_phase(cluster, "hangs", ReplicaPhase.STARTING)
    assert unready.message == "the engine does not answer its health check"
    end = in_phase(cluster, "hangs", ReplicaPhase.EXITED)
    assert (end.cause, end.exit_code) == (ExitCause.FAILED, 143)
    assert end.message.startswith("the engine did not answer its health check for 20 s")


def test_what_vanished_with_its_finalizer_is_lost_and_not_made_again(
    live_cluster: LiveCluster, cluster: KubernetesCluster
) -> None:
    launch = sleeper("vanished")
    cluster.launch(launch)
    runs(cluster, launch.name)
    plane = live_cluster.control_plane
    plane.request(
        "PATCH",
        f"{SPACE}/pods/vanished-main-0",
        body={"metadata": {"finalizers": None}},
        kind="application/merge-patch+json",
    )
    plane.request("DELETE", f"{SPACE}/pods/vanished-main-0?gracePeriodSeconds=0")
    lost = in_phase(cluster, launch.name, ReplicaPhase.LOST)
    assert "deleted from the cluster" in lost.message
    cluster.launch(launch)
    assert pods(live_cluster, launch.name) == []


def test_a_launch_whose_objects_are_all_gone_is_absent(
    live_cluster: LiveCluster, cluster: KubernetesCluster
) -> None:
    launch = sleeper("wiped")
    cluster.launch(launch)
    runs(cluster, launch.name)
    live_cluster.control_plane.wipe(
        "/registry/pods/ninefold-maps/", "/registry/configmaps/ninefold-maps/"
    )
    assert cluster.observe([launch.name]) == {}
    assert launch.name not in cluster.names()


def test_a_gang_of_which_a_part_is_refused_ends_with_the_reason_when_its_pods_have_ended(
    live_cluster: LiveCluster, cluster: KubernetesCluster
) -> None:
    cluster.launch(sleeper("makes-room"))
    runs(cluster, "makes-room")
    with quota(live_cluster, "two", pods=2):
        cluster.launch(sleeper("partly", count=2))
        until(partial(has_ended, cluster, "partly"), within=WITHIN, what="it ends")
    replicas = cluster.observe(["partly"])["partly"].replicas
    assert [each.cause for each in replicas] == [ExitCause.STOPPED, ExitCause.NOT_PREPARED]
    assert "exceeded quota: two" in replicas[1].message


def test_an_image_that_does_not_exist_is_named(
    cluster: KubernetesCluster,
) -> None:
    cluster.launch(replace(sleeper("pictureless"), image="ninefold.test/absent:9"))
    seen = saying(cluster, "pictureless", "the image")
    assert seen.phase is ReplicaPhase.PREPARING
    assert "ninefold.test/absent:9" in seen.message


def test_what_a_quota_of_the_cluster_forbids_is_refused_and_leaves_nothing(
    live_cluster: LiveCluster, cluster: KubernetesCluster
) -> None:
    cluster.launch(sleeper("makes-the-namespace"))
    with (
        quota(live_cluster, "full", pods=1),
        pytest.raises(LaunchRefused, match="exceeded quota: full"),
    ):
        cluster.launch(sleeper("too-much"))
    assert cluster.names() == {"makes-the-namespace"}
    secrets = live_cluster.control_plane.request("GET", f"{SPACE}/secrets").json()["items"]
    assert "too-much" not in {secret["metadata"]["name"] for secret in secrets}


def test_a_node_that_takes_no_work_keeps_it_waiting_with_the_reason(
    live_cluster: LiveCluster, cluster: KubernetesCluster
) -> None:
    plane = live_cluster.control_plane
    _cordon(live_cluster, cordoned=True)
    try:
        cluster.launch(sleeper("waits"))
        seen = saying(cluster, "waits", "the cluster")
        assert "unschedulable" in seen.message
    finally:
        _cordon(live_cluster, cordoned=False)
    runs(cluster, "waits")
    eviction = {
        "apiVersion": "policy/v1beta1",
        "kind": "Eviction",
        "metadata": {"name": "waits-main-0", "namespace": "ninefold-maps"},
    }
    plane.request("POST", f"{SPACE}/pods/waits-main-0/eviction", body=eviction)
    assert in_phase(cluster, "waits", ReplicaPhase.EXITED).cause is ExitCause.STOPPED


def test_a_credential_that_was_withdrawn_stops_nothing_and_says_so(
    live_cluster: LiveCluster, cluster: KubernetesCluster
) -> None:
    token = live_cluster.control_plane.tokens["admin"]
    stale = KubernetesCluster(
        installation="faults",
        kubeconfig=live_cluster.kubeconfig.read_text().replace(token, "0" * 32),
        **images.PROFILE,
    )
    cluster.launch(sleeper("goes-on"))
    for call in (stale.inventory, stale.names, lambda: stale.observe(["goes-on"])):
        with pytest.raises(ClusterUnavailable, match="enter a new one"):
            call()
    runs(cluster, "goes-on")


def _cordon(live: LiveCluster, *, cordoned: bool) -> None:
    live.control_plane.request(
        "PATCH",
        f"/api/v1/nodes/{NODE}",
        body={"spec": {"unschedulable": cordoned}},
        kind="application/merge-patch+json",
    )


def test_an_api_server_that_is_away_loses_nothing() -> None:
    """On a cluster of its own, as others must not feel it; the node falls silent afterwards."""
    try:
        with clusters.running(say=print) as live:
            adapter = cluster_of(live)
            adapter.launch(sleeper("endures"))
            started = runs(adapter, "endures").started_at
            live.control_plane.stop_api_server()
            for call in (adapter.inventory, adapter.names, lambda: adapter.observe(["endures"])):
                with pytest.raises(ClusterUnavailable, match="does not respond"):
                    call()
            with pytest.raises(ClusterUnavailable):
                adapter.launch(sleeper("later"))
            live.start_api_server()
            adapter.launch(sleeper("later"))
            assert runs(adapter, "endures").started_at == started
            _unreachable_node(live, adapter)
    except clusters.NoCluster as reason:
        pytest.skip(str(reason))


def _unreachable_node(live: LiveCluster, adapter: KubernetesCluster) -> None:
    """Silence is no end; an administrator's word that the machine is off is one."""
    live.node.kill_kubelet()
    until(lambda: not adapter.inventory()[0].ready, within=WITHIN, what="the node is not ready")
    assert first(adapter, "endures").phase is ReplicaPhase.RUNNING
    adapter.stop("endures", grace=timedelta(0))
    assert not first(adapter, "endures").ended
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "off", "effect": "NoExecute"}
    live.control_plane.request(
        "PATCH",
        f"/api/v1/nodes/{NODE}",
        body={"spec": {"taints": [taint]}},
        kind="application/merge-patch+json",
    )
    lost = in_phase(adapter, "endures", ReplicaPhase.LOST)
    assert NODE in lost.message

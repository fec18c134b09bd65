"""On a real API server our mark keeps others' pods away, no taint is lost, and what is wrong there is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import KubernetesCluster
from controlplane.adapters.clusters.kubernetes.api import ApiRefused
from controlplane.adapters.clusters.kubernetes.isolation_taints import ISOLATION_TAINT
from controlplane.domain.health.faults import SignalOrigin
from controlplane.ports.clusters import ClusterError, ClusterUnavailable, ReplicaPhase
from tests.contract.waiting import until
from tests.kubernetes.crowds import Crowd
from tests.kubernetes.fleets import decided, gang, launch_of, launched

pytestmark = pytest.mark.kubernetes

NODE, OTHER, NPU = "h800-0000", "h800-0001", "a910-0000"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/mindx-dl/configmaps"


def adapter(crowd: Crowd, installation: str = "01test") -> KubernetesCluster:
    return KubernetesCluster(
        installation=installation, kubeconfig=crowd.kubeconfig, image="crowd.test/nothing:1"
    )


def taints(crowd: Crowd, node: str = NODE) -> list[str]:
    found = crowd.api.get(f"/api/v1/nodes/{node}")["spec"].get("taints") or ()
    return [taint["key"] for taint in found]


@pytest.fixture
def cluster(crowd: Crowd) -> Iterator[KubernetesCluster]:
    tainted = adapter(crowd)
    yield tainted
    for node in (NODE, OTHER):
        tainted.untaint_node(node)
        crowd.api.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})


@contextmanager
def somebodys_pod(crowd: Crowd, name: str, *, on: str) -> Iterator[str]:
    container = {"name": "main", "image": "crowd.test/other:1"}
    spec = {"containers": [container], "nodeSelector": {"kubernetes.io/hostname": on}}

    def accepted() -> bool:
        # Its account is not ready at once.
        with suppress(ClusterError):
            return bool(crowd.api.create(PODS, {"metadata": {"name": name}, "spec": spec}))
        return False

    until(accepted, what="the pod is taken")
    yield f"{PODS}/{name}"
    crowd.api.delete(f"{PODS}/{name}", grace=0)


def test_a_mark_keeps_pods_of_others_away_until_it_is_taken_off(
    crowd: Crowd, cluster: KubernetesCluster
) -> None:
    assert cluster.taint_node(NODE, "80E01801 on card 3")
    said = crowd.api.get(f"/api/v1/nodes/{NODE}")["metadata"]["annotations"][ISOLATION_TAINT]
    assert json.loads(said) == {"installation": "01test", "reason": "80E01801 on card 3"}
    with somebodys_pod(crowd, "kept-away", on=NODE) as path:

        def refused() -> bool:
            conditions = crowd.api.get(path)["status"].get("conditions") or ()
            return any(each.get("reason") == "Unschedulable" for each in conditions)

        until(refused, what="no node has room for it")
        cluster.untaint_node(NODE)
        until(lambda: crowd.api.get(path)["spec"].get("nodeName") == NODE, what="it gets its node")
    assert ISOLATION_TAINT not in taints(crowd)


def test_a_marked_node_stays_ready_for_us_and_is_not_for_another_installation(
    crowd: Crowd, cluster: KubernetesCluster
) -> None:
    assert cluster.taint_node(NODE, "a fault")
    other = adapter(crowd, "02other")
    for asked, ready in ((cluster, True), (other, False)):
        assert {node.name: node.ready for node in asked.inventory()}[NODE] is ready
    assert not other.taint_node(NODE, "also")
    other.untaint_node(NODE)
    assert taints(crowd) == [ISOLATION_TAINT]


def test_our_own_pod_still_comes_to_a_node_that_bears_our_mark(
    crowd: Crowd, cluster: KubernetesCluster
) -> None:
    asked = gang("burn-in", chip="nvidia-h800", replicas=1, cards=1)
    (decision,) = decided(cluster.inventory(), asked).placements
    launch = launch_of(decision, name="burn-in")
    node = launch.roles[0].placements[0].node
    assert cluster.taint_node(node, "a fault")
    try:
        launched(cluster, launch)
        until(lambda: phase_is_running(cluster), what="its node has it")
    finally:
        cluster.stop("burn-in", grace=timedelta(seconds=1))
        until(lambda: cluster.observe(["burn-in"])["burn-in"].ended, what="it ends")
        cluster.remove("burn-in")
        cluster.untaint_node(node)


def phase_is_running(cluster: KubernetesCluster) -> bool:
    (replica,) = cluster.observe(["burn-in"])["burn-in"].replicas
    return replica.phase is ReplicaPhase.RUNNING


def test_taints_that_others_write_at_the_same_time_are_neither_lost_nor_put_back(
    crowd: Crowd, cluster: KubernetesCluster
) -> None:
    def others() -> None:
        for number in range(20):
            key = f"others.test/{number}"
            while True:
                found = crowd.api.get(f"/api/v1/nodes/{OTHER}")
                there = [*(found["spec"].get("taints") or ()), {"key": key, "effect": "NoSchedule"}]
                version = {"resourceVersion": found["metadata"]["resourceVersion"]}
                with suppress(ApiRefused):
                    body = {"metadata": version, "spec": {"taints": there}}
                    crowd.api.merge(f"/api/v1/nodes/{OTHER}", body)
                    break

    with ThreadPoolExecutor() as pool:
        writing = pool.submit(others)
        while not writing.done():
            # Who is contended with is tried again, as the product's loop does.
            with suppress(ClusterUnavailable):
                cluster.taint_node(OTHER, "a fault")
                cluster.untaint_node(OTHER)
        writing.result()
    cluster.untaint_node(OTHER)
    assert sorted(taints(crowd, OTHER)) == sorted(f"others.test/{number}" for number in range(20))


def test_a_node_that_is_gone_is_neither_marked_nor_missed(cluster: KubernetesCluster) -> None:
    assert not cluster.taint_node("no-such-node", "a fault")
    cluster.untaint_node("no-such-node")


def test_conditions_events_and_configmaps_of_a_real_server_are_told(
    crowd: Crowd, cluster: KubernetesCluster
) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    path = f"/api/v1/nodes/{NODE}"
    before = crowd.api.get(path)["status"]["conditions"]
    condition = {
        "type": "SysLogsXIDError",
        "status": "True",
        "reason": "SysLogsXIDErrorIsNotHealthy",
        "message": "ErrorCode:79 GPU:5 XID Recommended Action=RESTART_BM;",
        "lastTransitionTime": now,
        "lastHeartbeatTime": now,
    }
    crowd.api.merge(f"{path}/status", {"status": {"conditions": [*before, condition]}})
    event: dict[str, Any] = {
        "metadata": {"name": f"{NODE}.1"},
        "involvedObject": {"kind": "Node", "name": NODE, "uid": NODE},
        "type": "Warning",
        "reason": "TaskHung",
        "message": "task python:7 blocked for more than 120 seconds.",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": "kernel-monitor"},
    }
    crowd.api.create("/api/v1/namespaces/default/events", event)
    crowd.api.create("/api/v1/namespaces", {"metadata": {"name": "mindx-dl"}})
    faults = [{"npu_name": "Ascend910-3", "fault_level": "SeparateNPU", "fault_code": "80E18005"}]
    lists = {"DeviceList": {"huawei.com/Ascend910-Fault": json.dumps(faults)}}
    data = {"DeviceInfoCfg": json.dumps({f"mindx-dl-deviceinfo-{NPU}": lists})}
    crowd.api.create(MAPS, {"metadata": {"name": "cluster-info-device-0"}, "data": data})
    try:
        found = cluster.diagnose()
        assert found.unreadable == ()
        assert {(sign.node, sign.index, sign.origin, sign.code) for sign in found.signals} == {
            (NODE, 5, SignalOrigin.NVSENTINEL, "79"),
            (NODE, None, SignalOrigin.EVENT, "TaskHung"),
            (NPU, 3, SignalOrigin.MINDCLUSTER, "80E18005"),
        }
        labels = {node.name: node.labels or {} for node in cluster.inventory()}
        assert labels[NODE]["ninefold.io/keeper"] == "NVSentinel"
        assert "ninefold.io/keeper" not in labels[OTHER]
    finally:
        crowd.api.merge(f"{path}/status", {"status": {"conditions": before}})
        crowd.api.delete(f"/api/v1/namespaces/default/events/{NODE}.1")
        crowd.api.delete(f"{MAPS}/cluster-info-device-0")
        crowd.api.delete("/api/v1/namespaces/mindx-dl")

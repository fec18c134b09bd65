"""What we give Volcano is taken by a real API server with its CRDs, and what it does is seen as it is.

Its controllers are a stand-in; its scheduler was not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest

from controlplane.adapters.clusters.kubernetes.object_names import is_managed_by_installation
from controlplane.adapters.clusters.volcano import VolcanoCluster, object_names
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.domain.quotas.queues import QueueState
from controlplane.ports.clusters import (
    CheckVerdict,
    ClusterError,
    ClusterUnavailable,
    ExitCause,
    LaunchRefused,
    ObservedLaunch,
    ReplicaPhase,
)
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole, ReadinessProbe
from tests.contract import waiting
from tests.kubernetes import clusters, images, volcano
from tests.kubernetes.clusters import LiveCluster
from tests.kubernetes.volcano import StandIn
from tests.unit.adapters.volcano.trees import queue, tree

pytestmark = pytest.mark.kubernetes
until = partial(waiting.until, within=60.0)

OURS = "volcanotests"
CHIP = "nvidia-h800"
SLEEPS = "import time; time.sleep(600)"
NO_GRACE = timedelta(seconds=1)


@pytest.fixture(scope="module")
def stand_in(live_cluster: LiveCluster) -> Iterator[StandIn]:
    if not volcano.present():
        pytest.skip("Volcano's CRDs do not lie beside the project")
    label(live_cluster, "nvidia.com/gpu.product", "NVIDIA-H800")
    started = StandIn(live_cluster.control_plane, node=clusters.NODE)
    try:
        started.start()
        yield started
    finally:
        started.stop()
        label(live_cluster, "nvidia.com/gpu.product", None)


def label(live: LiveCluster, name: str, value: str | None) -> None:
    """Of the node; None takes it away."""
    body = {"metadata": {"labels": {name: value}}}
    path = f"/api/v1/nodes/{clusters.NODE}"
    answer = live.control_plane.request(
        "PATCH", path, body=body, kind="application/merge-patch+json"
    )
    assert answer.ok, answer.text


@pytest.fixture
def cluster(live_cluster: LiveCluster, stand_in: StandIn) -> Iterator[VolcanoCluster]:
    adapter = VolcanoCluster(
        installation=OURS, kubeconfig=live_cluster.kubeconfig.read_text(), **images.PROFILE
    )
    try:
        yield adapter
    finally:
        for name in adapter.names():
            adapter.stop(name, grace=NO_GRACE)
        for name in adapter.names():
            ended(adapter, name)
            adapter.remove(name)
        adapter.sync_queues({})


def python(code: str, *, replicas: int = 2, cards: int = 1, probed: bool = False) -> LaunchRole:
    return LaunchRole(
        name="main",
        argv=("{python}", "-c", code, "{index}"),
        placements=tuple(
            LaunchPlacement(node=clusters.NODE, cards=tuple(range(cards))) for _ in range(replicas)
        ),
        ports=("http",) if probed else (),
        probe=ReadinessProbe(port="http", path="/") if probed else None,
        limits=Resources(cpu=Millicpu(50), memory=Bytes(64 << 20)),
    )


def seen(cluster: VolcanoCluster, name: str) -> ObservedLaunch:
    return cluster.observe([name])[name]


def ended(cluster: VolcanoCluster, name: str) -> ObservedLaunch:
    return until(
        lambda: found if (found := seen(cluster, name)).ended else None, what=f"{name} ends"
    )


def running(cluster: VolcanoCluster, name: str) -> None:
    def is_running() -> bool:
        found = seen(cluster, name)
        assert not found.ended, found.replicas
        return all(replica.phase is ReplicaPhase.RUNNING for replica in found.replicas)

    until(is_running, what=f"{name} runs")


def test_a_gang_runs_to_its_end_and_each_member_knows_its_place(cluster: VolcanoCluster) -> None:
    code = "import os, sys; print(sys.argv[1], os.environ['NODE_RANK'], os.environ['NNODES'])"
    launch = Launch(name="gang", roles=(python(code),), labels={"priority": "10"})
    cluster.launch(launch)
    cluster.launch(launch)
    found = ended(cluster, "gang")
    assert [(one.cause, one.exit_code) for one in found.replicas] == [(ExitCause.FINISHED, 0)] * 2
    logs = [cluster.log("gang", role="main", index=n, offset=0, limit=99).content for n in (0, 1)]
    assert logs == [b"0 0 2\n", b"1 1 2\n"]
    assert {one.kind for one in cluster.objects("gang")} >= {"Job", "Pod", "ConfigMap"}
    cluster.remove("gang")
    assert "gang" not in cluster.names()


def test_a_gang_whose_cards_were_taken_is_stopped_whole_and_says_by_whom(
    cluster: VolcanoCluster, stand_in: StandIn
) -> None:
    cluster.launch(Launch(name="victim", roles=(python(SLEEPS),), grace=NO_GRACE))
    running(cluster, "victim")
    stand_in.evict("victim", namespace="ninefold-shared")
    for replica in ended(cluster, "victim").replicas:
        assert replica.cause is ExitCause.STOPPED
        assert "preempted or reclaimed by Volcano" in replica.message


def test_one_that_fails_ends_the_others_and_is_told_apart_from_them(
    cluster: VolcanoCluster,
) -> None:
    code = "import sys, time; sys.exit(7) if sys.argv[1] == '1' else time.sleep(600)"
    cluster.launch(Launch(name="fails", roles=(python(code),), grace=NO_GRACE))
    other, failed = ended(cluster, "fails").replicas
    assert (failed.cause, failed.exit_code) == (ExitCause.FAILED, 7)
    assert other.cause is ExitCause.STOPPED


def test_work_is_stopped_by_us_while_it_runs_and_while_it_waits(cluster: VolcanoCluster) -> None:
    cluster.sync_queues(tree(queue("full", chip=CHIP, guaranteed=1, cap=1)))
    cluster.launch(Launch(name="runs", roles=(python(SLEEPS),), grace=NO_GRACE))
    pending = Launch(name="waits", roles=(python(SLEEPS),), labels={"queue": "full"})
    cluster.launch(pending)
    running(cluster, "runs")
    for name in ("runs", "waits"):
        cluster.stop(name, grace=NO_GRACE)
        assert {one.cause for one in ended(cluster, name).replicas} == {ExitCause.STOPPED}
        assert {one.message for one in seen(cluster, name).replicas} == {"stopped"}


def test_what_does_not_fit_into_its_queue_waits_and_says_the_numbers(
    cluster: VolcanoCluster,
) -> None:
    assert cluster.sync_queues(tree(queue("small", chip=CHIP, guaranteed=2, cap=2))) == ()
    labels = {"queue": "small"}
    cluster.launch(Launch(name="first", roles=(python(SLEEPS),), labels=labels, grace=NO_GRACE))
    running(cluster, "first")
    cluster.launch(Launch(name="second", roles=(python(SLEEPS),), labels=labels, grace=NO_GRACE))

    def reason() -> bool:
        found = seen(cluster, "second")
        assert all(one.phase is ReplicaPhase.PREPARING for one in found.replicas)
        return "is full" in found.replicas[0].message

    until(reason, what="it says why it waits")
    assert seen(cluster, "second").replicas[0].message == (
        "queue small is full: 2 of at most 2 nvidia.com/gpu are allocated, and this workload requires 2"
    )
    cluster.stop("first", grace=NO_GRACE)
    running(cluster, "second")


def test_a_closed_queue_takes_nothing_until_it_is_opened_again(cluster: VolcanoCluster) -> None:
    path = (
        f"/apis/{object_names.QUEUES}/queues/{object_names.queue_name('shut', installation=OURS)}"
    )

    def state() -> str:
        found = cluster.api.found(path) or {}
        return str((found.get("status") or {}).get("state") or "")

    cluster.sync_queues(tree(queue("shut")))
    until(lambda: state() == "Open", what="the queue is open")
    cluster.sync_queues(tree(queue("shut", state=QueueState.CLOSED)))
    until(lambda: state() == "Closed", what="the queue is closed")
    launch = Launch(name="late", roles=(python("print(1)"),), labels={"queue": "shut"})
    with pytest.raises(ClusterUnavailable, match="queue shut is Closed"):
        cluster.launch(launch)
    assert "late" not in cluster.names()
    cluster.sync_queues(tree(queue("shut")))
    until(lambda: state() == "Open", what="the queue is open again")
    cluster.launch(launch)
    assert ended(cluster, "late").replicas[0].cause is ExitCause.FINISHED


def test_the_tree_is_kept_step_by_step_and_taken_away_again(cluster: VolcanoCluster) -> None:
    def theirs() -> dict[str, object]:
        listed = cluster.api.list(f"/apis/{object_names.QUEUES}/queues")
        mine = [one for one in listed if is_managed_by_installation(one, installation=OURS)]
        return {
            one["metadata"]["labels"][object_names.UID]: one["spec"].get("deserved") for one in mine
        }

    cluster.sync_queues(
        tree(
            queue("top", chip=CHIP, guaranteed=8), queue("a", parent="top", chip=CHIP, guaranteed=8)
        )
    )
    cluster.sync_queues(
        tree(
            queue("top", chip=CHIP, guaranteed=4),
            queue("b", parent="top", chip=CHIP, guaranteed=4),
        )
    )
    four = {"nvidia.com/gpu": "4"}
    assert theirs() == {"top": four, "b": four}
    names = [f"level-{number}" for number in range(6)]
    with pytest.raises(ClusterError, match="level-5 is at depth 6; the limit of Volcano is 5"):
        cluster.sync_queues(
            tree(*(queue(name, parent=up) for name, up in zip(names, ["", *names], strict=False)))
        )
    assert theirs() == {"top": four, "b": four}
    cluster.sync_queues({})
    assert theirs() == {}


def test_work_that_must_lie_close_together_needs_nodes_that_say_where_they_stand(
    cluster: VolcanoCluster, live_cluster: LiveCluster
) -> None:
    launch = Launch(name="close", roles=(python("print(1)"),), labels={"within": "leaf"})
    with pytest.raises(LaunchRefused, match="the cluster has no HyperNode of this level"):
        cluster.launch(launch)

    leaf = "topology.ninefold.dev/leaf"
    label(live_cluster, leaf, "l1")
    cluster.sync_topology()
    try:
        cluster.launch(launch)
        job = cluster.api.get(f"/apis/{object_names.JOBS}/namespaces/ninefold-shared/jobs/close")
        assert job["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 1}
        assert ended(cluster, "close").replicas[0].cause is ExitCause.FINISHED
    finally:
        label(live_cluster, leaf, None)
        cluster.sync_topology()
    assert cluster.api.list(f"/apis/{object_names.TOPOLOGY}/hypernodes") == []


def test_a_replica_that_serves_is_reached_like_on_any_kubernetes(cluster: VolcanoCluster) -> None:
    code = (
        "import http.server, os, sys; http.server.HTTPServer(('0.0.0.0', int(sys.argv[1])), "
        "http.server.SimpleHTTPRequestHandler).serve_forever()"
    )
    role = python(code, replicas=1, probed=True)
    serving = LaunchRole(
        name=role.name,
        argv=("{python}", "-c", code, "{port:http}"),
        placements=role.placements,
        ports=role.ports,
        probe=role.probe,
        limits=role.limits,
    )
    cluster.launch(Launch(name="serves", roles=(serving,), grace=NO_GRACE))
    running(cluster, "serves")
    found = cluster.endpoint("serves", role="main", index=0, port="http")
    assert found is not None
    assert found.url.startswith("http://10.77.")
    group = cluster.api.get(
        f"/apis/{object_names.QUEUES}/namespaces/ninefold-shared/podgroups/serves"
    )
    assert group["spec"]["minResources"]["nvidia.com/gpu"] == "1"


def test_priorities_and_checks_are_those_of_the_cluster(cluster: VolcanoCluster) -> None:
    cluster.sync_priority_classes({"urgent": 100, "low": -10})
    cluster.sync_priority_classes({"urgent": 100})
    path = f"/apis/{object_names.PRIORITIES}/priorityclasses"
    values = {
        one["metadata"]["annotations"][object_names.TITLE]: one["value"]
        for one in cluster.api.list(path)
        if is_managed_by_installation(one, installation=OURS) and "annotations" in one["metadata"]
    }
    assert values.items() >= {"urgent": 100, "low": -10}.items()
    found = {check.name: check for check in cluster.checks()}
    assert found["volcano-interfaces"].verdict is CheckVerdict.PASSED
    # The stand-in brings no configuration of Volcano's scheduler.
    assert found["volcano-scheduler"].verdict is CheckVerdict.LACKING
    assert "nvidia.com/gpu" in found["volcano-scheduler"].manifest

"""Gangs over simulated nodes: the scheduler decides over the real inventory, and the pods land just there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import KubernetesCluster
from controlplane.domain.common.topology import network_domains
from controlplane.domain.scheduling.plans import PendingReasonCode
from controlplane.domain.scheduling.snapshots import RunningClaim
from controlplane.ports.clusters import ReplicaPhase
from tests.kubernetes.crowds import H800, Crowd
from tests.kubernetes.fleets import decided, gang, launch_of, launched, running

pytestmark = pytest.mark.kubernetes

WITHIN = 120.0


def until(met: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + WITHIN
    while not met():
        assert time.monotonic() < limit, f"never within {WITHIN} s: {what}"
        time.sleep(0.1)


@pytest.fixture
def cluster(crowd: Crowd) -> Iterator[KubernetesCluster]:
    adapter = KubernetesCluster(
        installation="02gangs", kubeconfig=crowd.kubeconfig, image="crowd.test/nothing:1"
    )
    yield adapter
    names = adapter.names()
    for name, launch in adapter.observe(names).items():
        for replica in launch.replicas:
            crowd.end("ninefold-research", f"{name}-{replica.role}-{replica.index}")
    until(lambda: all(each.ended for each in adapter.observe(names).values()), "the end of all")
    for name in names:
        adapter.remove(name)


def pods_of(crowd: Crowd, name: str) -> list[Any]:
    selector = {"labelSelector": f"ninefold.io/launch={name}"}
    found = crowd.api.list("/api/v1/pods", query=selector)
    return sorted(found, key=lambda pod: int(pod["metadata"]["labels"]["ninefold.io/index"]))


def test_a_gang_of_64_cards_is_placed_under_one_leaf_and_its_pods_land_there(
    crowd: Crowd, cluster: KubernetesCluster
) -> None:
    nodes = cluster.inventory()
    asked = gang("gang", chip="nvidia-h800", replicas=8, cards=8, within="leaf")
    (decision,) = decided(nodes, asked).placements
    leaf_of = {node.name: network_domains(node.labels or {})["leaf"] for node in nodes}
    assert len({leaf_of[replica.node] for replica in decision.replicas}) == 1

    launched(cluster, launch_of(decision, name="gang"))

    def all_run() -> bool:
        seen = cluster.observe(["gang"])["gang"]
        return {replica.phase for replica in seen.replicas} == {ReplicaPhase.RUNNING}

    until(all_run, "eight replicas run")
    landed = [pod["spec"]["nodeName"] for pod in pods_of(crowd, "gang")]
    assert landed == [
        replica.node for replica in sorted(decision.replicas, key=lambda each: each.index)
    ]
    assert len(set(landed)) == 8
    amounts = {
        pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
        for pod in pods_of(crowd, "gang")
    }
    assert amounts == {"8"}


def test_four_cards_of_a_server_with_two_rings_are_one_ring(cluster: KubernetesCluster) -> None:
    rings = {(0, 1, 2, 3), (4, 5, 6, 7)}
    nodes = tuple(node for node in cluster.inventory() if node.name == "a910-0000")
    first, second = decided(
        nodes,
        gang("one", chip="ascend-910a", replicas=1, cards=4),
        gang("two", chip="ascend-910a", replicas=1, cards=4),
    ).placements
    chosen = {launch_of(each, name="x").roles[0].placements[0].cards for each in (first, second)}
    assert chosen == rings


def test_four_free_cards_of_two_rings_are_not_together(cluster: KubernetesCluster) -> None:
    nodes = tuple(node for node in cluster.inventory() if node.name == "a910-0000")
    pairs = [gang(str(number), chip="ascend-910a", replicas=1, cards=2) for number in range(4)]
    placed = {each.claim: each for each in decided(nodes, *pairs).placements}
    in_ring: dict[bool, RunningClaim] = {}
    for claim in pairs:
        decision = placed[claim.uid]
        low = decision.replicas[0].cards[0] in {f"a910-0000/{index}" for index in nodes[0].rings[0]}
        in_ring.setdefault(low, running(decision, claim))
    assert set(in_ring) == {True, False}
    four = gang("four", chip="ascend-910a", replicas=1, cards=4)
    (refusal,) = decided(nodes, four, beside=list(in_ring.values())).pending
    assert refusal.code is PendingReasonCode.NOT_TOGETHER, refusal


def test_a_full_cluster_keeps_a_gang_waiting_with_the_reason(
    crowd: Crowd, cluster: KubernetesCluster
) -> None:
    nodes = cluster.inventory()
    everything = gang("all", chip="nvidia-h800", replicas=H800.count, cards=8)
    (held,) = decided(nodes, everything).placements
    launched(cluster, launch_of(held, name="all"))
    until(lambda: len(pods_of(crowd, "all")) == H800.count, "a pod on every node")

    later = gang("later", chip="nvidia-h800", replicas=2, cards=8)
    (refusal,) = decided(cluster.inventory(), later, beside=[running(held, everything)]).pending
    assert refusal.code is PendingReasonCode.NO_FREE_CARDS, refusal
    assert "nvidia-h800" in refusal.reason

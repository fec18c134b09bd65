"""Where work runs: one cluster that is this machine's kind, and two of sample GPUs and NPUs."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from apps.fleet import services
from apps.fleet.models import Card, Cluster, Node
from apps.fleet.services import clusters
from apps.quotas.models import Queue
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.common.topology import CardLocality
from controlplane.ports.clusters import ObservedCard, ObservedNode
from tests.e2e.demo.clock import before
from tests.e2e.demo.reasons import sample_reason
from tests.e2e.demo.users import Users

#: Chips that plug-ins know; the cards are made up.
GPU = "nvidia-h800"
NPU = "ascend-910b3"
CARDS_OF_A_NODE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    cluster: Cluster
    #: Sample clusters that say more of themselves: one that does well, one that does not answer.
    gpus: Cluster
    lost: Cluster
    default: Queue
    #: Of Maps, with a cap that is reached.
    maps: Queue
    #: Of Search; closed when all work is submitted.
    search: Queue


def fleet(users: Users) -> Fleet:
    cluster = services.cluster_ensure(name="workshop", kind="local")
    _inventory(cluster, chip="cpu", memory=0, nodes=2)
    gpus = services.cluster_ensure(name="sample-gpus", kind="fake")
    _inventory(gpus, chip=GPU, memory=80, nodes=4)
    npus = services.cluster_ensure(name="sample-npus", kind="fake")
    _inventory(npus, chip=NPU, memory=64, nodes=4)
    lost = services.cluster_ensure(name="sample-lab", kind="fake")
    services.cluster_error_record(
        cluster=lost,
        error=sample_reason("cluster.connection.unresponsive", error="read timeout of 10 s"),
    )
    services.node_set_cordoned(
        node=Node.objects.get(name="sample-npus-4"), cordoned=True, actor=users.admin
    )
    for checked in (gpus, lost):
        clusters.cluster_check(cluster=checked, actor=users.admin, at=timezone.now())
    _card("sample-gpus-3", 2, CardState.ISOLATED, "uncorrectable memory errors: 4 in 10 min")
    _card("sample-gpus-3", 3, CardState.NO_NEW_WORK, "kept free for a firmware update tonight")
    _card("sample-npus-2", 6, CardState.UNKNOWN, services.UNHEALTHY)
    Node.objects.filter(cluster=gpus).update(locality=_locality())
    maps = Queue.objects.create(name="maps-training", team=users.maps)
    for chip, cap in {GPU: 16, "cpu": 8}.items():
        maps.entitlements.create(chip=chip, guaranteed=cap // 2, cap=cap)
    return Fleet(
        cluster=cluster,
        gpus=gpus,
        lost=lost,
        default=Queue.objects.create(name="default"),
        maps=maps,
        search=Queue.objects.create(name="search-nightly", team=users.search),
    )


def _inventory(cluster: Cluster, *, chip: str, memory: int, nodes: int) -> None:
    observed = [
        ObservedNode(
            name=f"{cluster.name}-{number}",
            cards=tuple(
                ObservedCard(
                    index=index,
                    chip=chip,
                    memory=Bytes(memory * GIB),
                    serial=f"{cluster.name}-{number}{index:02}" if memory else "",
                )
                for index in range(CARDS_OF_A_NODE)
            ),
            capacity=Resources(cpu=Millicpu(96_000), memory=Bytes(768 * GIB)),
        )
        for number in range(1, nodes + 1)
    ]
    services.inventory_record(
        cluster=cluster,
        nodes=observed,
        isolation="own uid, scrubbed environment" if chip == "cpu" else "not isolated: sample data",
        at=timezone.now(),
    )
    Cluster.objects.filter(pk=cluster.pk).update(created_at=before(days=180))


def _locality() -> dict[str, object]:
    """Of eight cards: four on each NUMA node, two on each switch with an adapter of its own."""
    return {
        str(index): CardLocality(
            index=index,
            pci_address=f"0000:{0x1B + 0x20 * index:02x}:00.0",
            numa_node=index // 4,
            nics_same_switch=(f"mlx5_{index // 2}",),
            nics_same_numa=(f"mlx5_{index // 2 ^ 1}",),
        ).document
        for index in range(CARDS_OF_A_NODE)
    }


def _card(node: str, index: int, state: CardState, reason: str) -> None:
    Card.objects.filter(node__name=node, index=index).update(state=state, state_reason=reason)

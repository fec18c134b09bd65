"""Launches with everything that their objects depend on, as a cluster would have found it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.inventory import NodeCard
from controlplane.adapters.clusters.kubernetes.launch_plans import (
    LaunchPlan,
    PlannedReplica,
    RuntimeArchive,
)
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.ports import adapter_registry
from controlplane.ports.chips import VendorPodSettings
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole, ReadinessProbe
from tests.unit.adapters.volcano.trees import OURS

OWNER = {"metadata": {"name": "attempt-1", "uid": "u-1"}}
LIMITS = Resources(cpu=Millicpu(8000), memory=Bytes(64 * GIB))


def trainer(*, nodes: int = 2, cards: int = 8, **more: Any) -> LaunchRole:
    values: dict[str, Any] = {
        "name": "trainer",
        "argv": ("{python}", "train.py", "--rank", "{index}", "--peers", "{leader}"),
        "environment": {"RANK_FILE": "{work}/ranks/{index}", "PRICE": "$(NOT_A_VARIABLE)"},
        "limits": LIMITS,
    }
    places = tuple(LaunchPlacement(node=f"n{n}", cards=tuple(range(cards))) for n in range(nodes))
    return LaunchRole(placements=places, **{**values, **more})


def server(*, nodes: int = 2, cards: int = 8) -> LaunchRole:
    return trainer(
        nodes=nodes,
        cards=cards,
        name="server",
        argv=("{python}", "-m", "serve", "{port:http}"),
        environment={},
        ports=("http",),
        probe=ReadinessProbe(port="http", path="/health"),
    )


def planned(
    *roles: LaunchRole,
    chip: str = "",
    launch: str = "attempt-1",
    binds: bool = True,
    **options: Any,
) -> LaunchPlan:
    """All on that chip; without one, on processors."""
    known = adapter_registry.all_chips()[chip] if chip else None
    resource = known.resource if known else ""
    whole = adapter_registry.all_chips()[known.slice_of or known.name].resource if known else ""
    replicas = {
        role.name: [
            PlannedReplica(
                index=index,
                node=place.node,
                cards=tuple(
                    NodeCard(index=each, chip=chip or "cpu", resource=resource, card_resource=whole)
                    for each in place.cards
                ),
            )
            for index, place in enumerate(role.placements)
        ]
        for role in roles
    }
    extras = (
        adapter_registry.plugin_of_chip(known).profile().pods.of(known)
        if known
        else VendorPodSettings()
    )
    return LaunchPlan(
        launch=Launch(
            name=launch,
            roles=roles,
            secrets={"TOKEN": "t"},
            image="registry.example/engine:1",
            labels={"team": "vision", "kind": "job", "uid": "a1"},
            grace=timedelta(seconds=60),
        ),
        profile=ClusterProfile.read(options),
        installation=OURS,
        namespace="ninefold-vision",
        runtime=RuntimeArchive(content=b"zip", name="ninefold-runtime-0"),
        replicas=replicas,
        extras=extras,
        checkpoints=launch,
        binds=binds,
    )

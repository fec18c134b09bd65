"""Simulated nodes and Launches as a cluster reports real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controlplane.domain.geometry import text_of
from controlplane.domain.network import labels_of
from controlplane.domain.simulation.descriptions import SimulatedNode
from controlplane.domain.simulation.lives import Life, Place, struck
from controlplane.ports.clusters import (
    ExitCause,
    ObservedCard,
    ObservedLaunch,
    ObservedNode,
    ObservedReplica,
    Phase,
)
from controlplane.ports.discovery import NUMA

_TERMINATED = 143


def observed_node(node: SimulatedNode) -> ObservedNode:
    """The node with every card healthy."""
    group = node.group
    numa = {NUMA: text_of(group.numa)} if group.numa else {}
    return ObservedNode(
        name=node.name,
        cards=tuple(
            ObservedCard(
                index=index,
                chip=group.chip.name,
                memory=group.chip.memory,
                serial=f"SIM-{node.name}-{index:02}",
            )
            for index in range(group.cards)
        ),
        capacity=group.capacity,
        labels={
            "hostname": node.name,
            **group.chip.node_labels,
            **numa,
            **labels_of(node.domains),
            **group.labels,
        },
        rings=group.rings,
    )


def observed_launch(lived: Life) -> ObservedLaunch:
    record = lived.record
    return ObservedLaunch(
        name=record.name,
        replicas=tuple(_replica(lived, place, record.places) for place in record.places),
        labels=record.labels,
    )


def _replica(lived: Life, place: Place, places: Sequence[Place]) -> ObservedReplica:
    ending = lived.ending
    seen = ObservedReplica(
        role=place.role,
        index=place.index,
        phase=Phase(lived.stage.value),
        message=lived.message,
        started_at=lived.started_at,
    )
    if ending is None:
        return seen
    seen = replace(
        seen,
        exit_code=ending.exit_code,
        cause=ExitCause(ending.cause),
        ended_at=ending.at,
    )
    if struck(place, ending):
        return seen
    first = next(one for one in places if struck(one, ending))
    return replace(
        seen,
        phase=Phase.EXITED,
        cause=ExitCause.STOPPED,
        exit_code=_TERMINATED,
        message=f"stopped, because {first.role}-{first.index} had failed: {ending.message}",
    )

"""Simulated nodes and Launches as a cluster reports real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controlplane.domain.common.topology import format_card_groups, network_labels
from controlplane.domain.simulation.fleets import SimulatedNode
from controlplane.domain.simulation.lifecycle import LaunchSnapshot, ReplicaLocation, is_affected
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
    numa = {NUMA: format_card_groups(group.numa)} if group.numa else {}
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
            **network_labels(node.domains),
            **group.labels,
        },
        rings=group.rings,
    )


def observed_launch(snapshot: LaunchSnapshot) -> ObservedLaunch:
    record = snapshot.record
    return ObservedLaunch(
        name=record.name,
        replicas=tuple(
            _replica(snapshot, location, record.locations) for location in record.locations
        ),
        labels=record.labels,
    )


def _replica(
    snapshot: LaunchSnapshot, location: ReplicaLocation, locations: Sequence[ReplicaLocation]
) -> ObservedReplica:
    outcome = snapshot.outcome
    seen = ObservedReplica(
        role=location.role,
        index=location.index,
        phase=Phase(snapshot.stage.value),
        message=snapshot.message,
        started_at=snapshot.started_at,
    )
    if outcome is None:
        return seen
    seen = replace(
        seen,
        exit_code=outcome.exit_code,
        cause=ExitCause(outcome.cause),
        ended_at=outcome.at,
    )
    if is_affected(location, outcome):
        return seen
    first = next(one for one in locations if is_affected(one, outcome))
    return replace(
        seen,
        phase=Phase.EXITED,
        cause=ExitCause.STOPPED,
        exit_code=_TERMINATED,
        message=f"stopped, because {first.role}-{first.index} had failed: {outcome.message}",
    )
